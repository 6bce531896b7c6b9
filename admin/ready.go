package admin

import (
	"fmt"
	"strconv"
)

// The states of a partition, as DescribeMirrors names them. Kafka: MirrorPartitionState.
const (
	StatePreparing = "PREPARING"
	StateMirroring = "MIRRORING"
	StatePausing   = "PAUSING"
	StatePaused    = "PAUSED"
	StateStopping  = "STOPPING"
	StateStopped   = "STOPPED"
	StateFailed    = "FAILED"
	StateUnknown   = "UNKNOWN"
)

func (p *PartitionDescription) name(topic string) string {
	return topic + "-" + strconv.Itoa(int(p.Partition))
}

// notReady says why a partition cannot be failed over without loss, "" if it can.
func (p *PartitionDescription) notReady() string {
	switch {
	case p.State == StateStopped || p.State == StateMirroring && p.Lag == 0:
		return ""
	case p.State == StateFailed:
		return "is FAILED: " + p.Cause
	case p.State == StateMirroring && p.Lag < 0:
		return "is MIRRORING and its lag is not known yet"
	case p.State == StateMirroring:
		return fmt.Sprintf("lags by %d record(s)", p.Lag)
	case p.State == StatePaused || p.State == StatePausing:
		return "is " + p.State + ": how far the source is ahead is not known; resume it"
	default:
		return "is " + p.State
	}
}
