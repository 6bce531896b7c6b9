// Package replicator is the mirror agent: it follows source clusters and keeps copies of their partitions in Kafka log
// directories.
//
// # What
//
// An Agent holds the log directories of one Config and runs one mirror for each source cluster that is declared, or
// that a request made. A mirror asks its source what topics there are, follows leaders and new partitions, and gives
// each partition to a fetcher, which appends what it fetches. A partition's state:
//
//	PREPARING  stored before anything is done; source, topic id and start position are settled, an existing copy is
//	           compared with the source where its binding is in doubt
//	MIRRORING  stored before the first fetch; the log grows with the source
//	PAUSING    stored before its fetcher lets go; what it has is made durable
//	PAUSED     rests, and goes on from the end of its log
//	STOPPING   stored before its fetcher lets go; what it has is made durable, the last mirror epoch and end are stored
//	STOPPED    mirrored no more, until it is started again
//	FAILED     with a Cause; tried again with exponential back-off and full jitter without end where the cause can heal
//	           by itself, a limited number of times where it may, not at all where it cannot
//
// What is wanted of a topic is another matter than the states of its partitions: mirroring, paused or stopped, stored
// with the mirror that holds the topic (wanted.go). Requests and patterns change what is wanted, the mirror's goroutine
// moves each partition towards it, by legal moves only.
//
// # Layout
//
// `__mirror_state-0` in the first log directory (or metadata.log.dir) is a Kafka log of the records in staterecord.go,
// `__cluster_metadata-0` beside it one of those in metadatarecord.go.
// Every other partition directory is a mirrored one, in the format of package segment; what it is a copy of stands in
// its source-leader-epoch-checkpoint. What recovery cuts lies in segmirror-cut beside the log directory.
//
//	agent.go      New, Run: log directories, mirrors, helpers, orderly close
//	config.go     Config; configkeys.go, configparse.go its keys; mirrorconfig.go, client*.go those of a mirror
//	mirror.go     the mirror's goroutine: who works on which partition; opening.go the workers that open logs;
//	              discover.go what the source's answers change
//	mirrors.go    mirrors come and go; reconsider.go follows what is stored of one; wanted.go, binding.go, patterns.go
//	              what is wanted; step.go the moves; settle.go what PAUSING and STOPPING do
//	control.go    what requests may do to mirrors, controltopics.go to topics; servemirrors.go the requests
//	source.go     metadata and topic configurations
//	fetcher.go    the loop of one connection; apply.go one partition's answer; prepare.go before its first fetch;
//	              fetchplan.go who is asked for how much; diverge.go where two histories part; peek.go single batches
//	              of the source; announce.go epochs that an agent tells beside its batches, serveepochs.go the other end
//	throttle.go   limits on what is appended; quota.go the source's; hangup.go leaving a source that is silent
//	partition.go  what is known of a partition, and by whom; state.go, retry.go its states and causes
//	logset.go     the open logs of all log directories; flusher.go makes them durable, parking.go closes their files
//	recordlog.go  a log of the agent's own records; statelog.go and metadatalog.go are the two of them
//	metrics.go, health.go, status.go  what others see
//	server.go     the listener for Kafka clients; handlers.go and serve*.go what it answers, from the open logs
//	metadatarecord.go  the records of __cluster_metadata
//
// # Invariants
//
// A mirror is cut only where its source says a newer leader epoch put other records there and the mirror's
// configuration allows it, or where retention at the source passed its end and the gap policy says to go on; both are
// logged, the lost range is stored first. A source that is shorter never shortens its mirror. Records of another epoch
// than an agent announced are not visible yet, and are cut again.
//
// A directory is bound to one (cluster id, topic id). Another topic under the name is FAILED, for every partition of
// the topic, also for those that have no directory yet. A directory that was renamed or removed is never made again
// while the agent runs.
//
// One fault is as small as its cause: a refused batch, an unreadable file, a topic without rights fails that partition
// or topic; a source broker that is away only those it leads.
//
// # Concurrency
//
// The server has a goroutine for each listener and each connection, which reads logs beside their owners; Run starts it
// and closes it first.
//
// One goroutine each: the mirror, its source, every fetcher, the state log's writer, the flusher, the space watch, and
// short-lived workers that open logs. Agent.Run starts and waits for all of them; the state log's writer and the HTTP
// server are started by New and stopped by Run (or by New when it fails).
//
// A partition is held by its mirror's goroutine or by one fetcher, which owns its log then. It is handed over by a
// message: the mirror adds it to a fetcher's inbox; the fetcher releases it into the mirror's, on a failure, on a stale
// leader or when the mirror removes it. The mirror adds it elsewhere only after that release, so two goroutines never
// touch one log; the flusher, which may sync beside the owner, is told to drop a partition before its log is closed.
//
// Locks, in the order in which they may be taken; none but the first is held over I/O or a channel:
//
//	Agent.control  one change of what is wanted at a time, the sync of the metadata log included; a mirror's goroutine
//	               takes it, so who holds it waits for none
//	Agent.mu       the mirrors
//	throttles.mu   one change of a throttle at a time
//	mirror.mu      the lists that Status reads
//	logSet.mu      the table of directories
//	flusher.mu     the table of logs to flush
//	recordLog.mu   what the records say
//	stats.mu       a partition's lost ranges
//	mailbox.mu     a queue
//	server.mu      the connections
//	catalog.mu     topics by id
//	bell.mu        who waits for records
//
// # Crash contract
//
// A request is acknowledged when what it wants is durable. A state is durable before its action runs, so that every
// action can be run again from its start. A FAILED that could not be stored (a full disk) stands all the same: after a
// restart it is found again. A lost range is durable before the log is moved over it; met again after a crash it is
// merged. The state log is rewritten behind its end before what it replaces is dropped. Everything else is package
// segment's contract: after any crash a partition is a batch-exact prefix of its source, and fetching goes on from its
// end.
package replicator
