package replicator

// configTexts tell what keys are for, in the words of docs/configuration.md.
var configTexts = map[string]string{
	"bootstrap.servers": "" +
		"Required. host:port list of the source cluster. The first cluster id met is bound to the " +
		"mirror's name: another one later is FAILED.",
	"mirror.acl.include": "" +
		"ACLs to be carried over: rules type;name;operation;permission;principal, separated by commas; " +
		"fields may be left out from the end, * is any, name and principal are RE2 patterns that match " +
		"whole.",
	"mirror.fetch.backoff.ms":         "Pause after an answer that was an error.",
	"mirror.fetch.max.bytes":          "Most bytes of one partition in an answer; a larger batch comes whole.",
	"mirror.fetch.min.bytes":          "How much it waits for.",
	"mirror.fetch.response.max.bytes": "Most bytes of an answer.",
	"mirror.fetch.wait.max.ms":        "How long the source may hold a fetch that finds nothing.",
	"mirror.gap.policy": "" +
		"When retention at the source passed the mirror's end: resume begins the log anew at the " +
		"source's log start and records the lost range; fail stops the partition as it is.",
	"mirror.groups.exclude": "Those left out.",
	"mirror.groups.include": "Consumer groups whose offsets are to be carried over.",
	"mirror.leader.epoch.policy": "" +
		"preserve keeps the batches' leader epochs, so that they are byte-identical. rebase stamps one " +
		"constant on all batches of a partition (four bytes outside the CRC), which a broker needs that " +
		"is to adopt the directory under a new topic. Not set: rebase where handoff.bootstrap.servers is " +
		"set, else preserve. Fixed when the mirror first starts.",
	"mirror.peer.bootstrap.servers": "The other side's agent.",
	"mirror.replication.throttled.rate": "" +
		"Bytes per second that the agent appends to the partitions which topics list, all mirrors " +
		"together: see [throttles](#throttles). At least 1.",
	"mirror.socket.receive.buffer.bytes": "" +
		"SO_RCVBUF; -1 leaves it to the kernel, which is right for long distances, too.",
	"mirror.socket.timeout.ms": "" +
		"Silence on a fetching connection, beyond the wait above, after which it is given up; one second " +
		"where the leader has moved away, or a partition is stopped.",
	"mirror.start.position":           "Where an empty partition begins: earliest, latest, timestamp:MS or offset:N.",
	"mirror.topic.properties.exclude": "Topic settings that are not carried over.",
	"mirror.topics.exclude":           "Names and patterns left out; wins over include.",
	"mirror.topics.include": "" +
		"Names and RE2 patterns of the topics to mirror, matched against whole names. Nothing included, " +
		"nothing mirrored.",
	"mirror.unclean.leader.election.enable": "" +
		"Whether the mirror may cut its own tail when the source elected a leader without those records. " +
		"Not allowed: the partition is FAILED with both sides' epochs.",
	"request.timeout.ms":                 "Limit for metadata, offset and configuration requests.",
	"socket.connection.setup.timeout.ms": "Limit for a connection's start.",
}
