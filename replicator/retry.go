package replicator

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Cause is why a partition is FAILED: its kind decides whether and how long the agent tries again.
type Cause int8

// The causes. Their numbers are stored and never change.
const (
	CauseNone              Cause = 0
	CauseSourceUnreachable Cause = 1  // no connection to the leader
	CauseNoLeader          Cause = 2  // the source has no leader for it
	CauseNotAuthorized     Cause = 3  // the source refuses us
	CauseDiskFull          Cause = 4  // no room, or less than min.free.bytes
	CauseIO                Cause = 5  // a read, write or sync here failed
	CauseCorruptBatch      Cause = 6  // the source's bytes do not check, again and again
	CauseOutOfOrder        Cause = 7  // the source's offsets overlap ours
	CauseProtocol          Cause = 8  // an answer that makes no sense, or a code we do not know
	CauseTopicGone         Cause = 9  // the source has no such topic any more
	CauseCreatedAgain      Cause = 10 // another topic under the same name
	CauseClusterChanged    Cause = 11 // another cluster behind the same addresses
	CauseDiverged          Cause = 12 // the source holds other records at our offsets
	CauseSourceShorter     Cause = 13 // the source ends before our end
	CauseOvertaken         Cause = 14 // retention passed our end, and mirror.gap.policy is fail
	CauseDirectoryLost     Cause = 15 // the partition's directory was renamed or removed
	CauseConflict          Cause = 16 // another mirror holds the topic
	CauseLoop              Cause = 17 // the topic's records come from here
	CauseRole              Cause = 18 // the source is none that an agent with this mirror.role may mirror
)

var causeNames = map[Cause]string{
	CauseNone: "none", CauseSourceUnreachable: "source_unreachable", CauseNoLeader: "no_leader",
	CauseNotAuthorized: "not_authorized", CauseDiskFull: "disk_full", CauseIO: "io",
	CauseCorruptBatch: "corrupt_batch", CauseOutOfOrder: "out_of_order", CauseProtocol: "protocol",
	CauseTopicGone: "topic_gone", CauseCreatedAgain: "created_again", CauseClusterChanged: "cluster_changed",
	CauseDiverged: "diverged", CauseSourceShorter: "source_shorter", CauseOvertaken: "overtaken",
	CauseDirectoryLost: "directory_lost", CauseConflict: "conflict", CauseLoop: "mirror_loop",
	CauseRole: "wrong_role",
}

// String returns the cause's name as metrics label it.
func (c Cause) String() string {
	if name, ok := causeNames[c]; ok {
		return name
	}
	return fmt.Sprintf("cause(%d)", int8(c))
}

// retryClass is how long a cause is tried again.
type retryClass int8

const (
	retryForever retryClass = iota // can heal by itself
	retryCounted                   // up to mirror.failed.retry.max.attempts
	retryNever                     // cannot heal; what the source says at a refresh may still lift it
)

func (c Cause) retryClass() retryClass {
	switch c {
	case CauseSourceUnreachable, CauseNoLeader, CauseNotAuthorized, CauseDiskFull, CauseIO,
		CauseSourceShorter, CauseLoop, CauseNone:
		return retryForever
	case CauseCorruptBatch, CauseOutOfOrder, CauseProtocol:
		return retryCounted
	default:
		return retryNever
	}
}

// fromMetadata reports whether the cause was read from the source's metadata, so that a refresh can lift it.
func (c Cause) fromMetadata() bool {
	switch c {
	case CauseTopicGone, CauseCreatedAgain, CauseClusterChanged, CauseNotAuthorized, CauseConflict, CauseLoop,
		CauseRole:
		return true
	default:
		return false
	}
}

// commands are the command lines that a remedy names.
type commands struct{ start, stop string }

// commands returns the command lines that start and stop a topic.
func (a *Agent) commands(mirror, topic string) commands {
	addr := "HOST:PORT"
	if a.clients != nil {
		for _, e := range a.clients.endpoints {
			addr = hostPort(e.host, e.port)
			break
		}
	}
	line := func(action string) string {
		return fmt.Sprintf("segmirror mirrors --bootstrap-server %s --%s --mirror %s --topics %s",
			addr, action, mirror, topic)
	}
	return commands{start: line("start"), stop: line("stop")}
}

// remedy says what an operator can do about a cause, in words that follow the facts.
func (c Cause) remedy(run commands) string {
	switch c {
	case CauseCreatedAgain:
		return "the copy is kept; to mirror the new topic: " + run.stop + ", stop the agent, move the copy's directories " +
			"away, start the agent, " + run.start
	case CauseClusterChanged:
		return "point bootstrap.servers at the cluster the mirror began with, or create a mirror of another name"
	case CauseTopicGone:
		return "the copy is kept; mirrored on if the topic comes back, or: " + run.stop
	case CauseDiverged:
		return "keep whichever side is right; mirror.unclean.leader.election.enable=true cuts the mirror's own tail: " +
			"set it, then " + run.start
	case CauseSourceShorter:
		return "the copy is kept: it holds more than the source; save it before anything is cut"
	case CauseOvertaken:
		return "set mirror.gap.policy=resume to go on at the source's log start, then " + run.start
	case CauseDirectoryLost:
		return "put the directory back, then " + run.start + "; or restart the agent to mirror it from its start position"
	case CauseLoop:
		return "it is mirrored once one of the other mirrors has stopped it, or: " + run.stop
	case CauseRole:
		return "set mirror.role and bootstrap.servers right, and restart the agent"
	case CauseConflict:
		return "exclude the topic from one of the mirrors, or stop it there and " + run.start
	}
	if c.retryClass() == retryForever {
		return "it is tried again by itself; at once: " + run.start
	}
	return "it is tried again a few times; once the cause is gone: " + run.start
}

// failure is a cause with its facts.
type failure struct {
	cause Cause
	text  string
}

func failf(cause Cause, format string, args ...any) *failure {
	return &failure{cause: cause, text: fmt.Sprintf(format, args...)}
}

// backoff returns the wait before try number attempt (from 1): exponential, capped, with full jitter.
func (r RetryConfig) backoff(attempt int) time.Duration {
	limit := r.InitialBackoff
	for i := 1; i < attempt && limit < r.MaxBackoff; i++ {
		limit *= 2
	}
	limit = min(limit, r.MaxBackoff)
	if limit <= 0 {
		return 0
	}
	return rand.N(limit) + 1
}

// spaceBackoff caps the wait for room on a disk: looking costs one system call.
const spaceBackoff = 5 * time.Second

// next returns the wait before the next try of a partition that failed attempt times in a row, and false when it is
// not tried again.
func (r RetryConfig) next(cause Cause, attempt int) (time.Duration, bool) {
	switch cause.retryClass() {
	case retryNever:
		return 0, false
	case retryCounted:
		if attempt > r.MaxAttempts {
			return 0, false
		}
	case retryForever:
		if cause == CauseDiskFull {
			return min(r.backoff(attempt), spaceBackoff), true
		}
	}
	return r.backoff(attempt), true
}
