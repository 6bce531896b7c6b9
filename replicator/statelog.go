package replicator

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"

	"segmirror/segment"
)

// partitionRecord is what is stored of one partition.
type partitionRecord struct {
	state    State
	cause    Cause
	attempts int
	text     string
	shape    logShape
	lost     []LostSpan
	epoch    *LastMirrorEpoch
}

// mirrorRecord is what is stored of one mirror.
type mirrorRecord struct {
	sourceClusterID string
	epochPolicy     EpochPolicy
	partitions      map[segment.TopicPartition]*partitionRecord
}

// stateLog is `__mirror_state-0`: the states of mirrored partitions, their lost ranges and what a mirror is bound to.
type stateLog struct {
	*recordLog[StateRecord, stateImage]
}

// stateImage is what the state log says, by mirror.
type stateImage map[string]*mirrorRecord

var stateTopicPartition = segment.TopicPartition{Topic: stateTopic}

func stateLogKind() recordKind[StateRecord, stateImage] {
	return recordKind[StateRecord, stateImage]{
		name:         "state log",
		tp:           stateTopicPartition,
		id:           segment.TopicID{15: 16},
		config:       recordLogConfig(),
		rewriteBytes: recordLogRewriteBytes,

		empty:  func() stateImage { return stateImage{} },
		decode: DecodeStateRecord,
		encode: func(r *StateRecord) (key, value []byte) {
			if !r.Tombstone {
				value = r.AppendValue([]byte{})
			}
			return r.AppendKey(nil), value
		},
		apply: applyState,
		all:   stateRecords,
	}
}

// openStateLog opens and replays the state log of dir and starts its writer; close stops it.
func openStateLog(dir *segment.LogDir, logger *slog.Logger) (*stateLog, error) {
	log, err := openRecordLog(stateLogKind(), dir, logger)
	if err != nil {
		return nil, err
	}
	return &stateLog{log}, nil
}

// mirror returns a copy of what is stored of a mirror, empty if nothing is. Any goroutine.
func (s *stateLog) mirror(name string) mirrorRecord {
	out := mirrorRecord{partitions: map[segment.TopicPartition]*partitionRecord{}}
	s.view(func(image stateImage) {
		m := image[name]
		if m == nil {
			return
		}
		out.sourceClusterID, out.epochPolicy = m.sourceClusterID, m.epochPolicy
		for tp, p := range m.partitions {
			c := *p
			c.lost = slices.Clone(p.lost)
			out.partitions[tp] = &c
		}
	})
	return out
}

// shape returns the shape that is stored of a partition, zero if none is. Any goroutine.
func (s *stateLog) shape(mirror string, tp segment.TopicPartition) (shape logShape) {
	s.view(func(image stateImage) {
		if m := image[mirror]; m != nil && m.partitions[tp] != nil {
			shape = m.partitions[tp].shape
		}
	})
	return shape
}

// applyState merges one record into table. A later record wins; a mirror's tombstone of its states forgets them.
func applyState(table stateImage, r *StateRecord) {
	m := table[r.Mirror]
	if r.Tombstone {
		switch {
		case m == nil:
		case r.Type == recordPartitionState:
			delete(table, r.Mirror)
		case r.Type == recordLastMirrorEpochs:
			for _, p := range m.partitions {
				p.epoch = nil
			}
		}
		return
	}
	if m == nil {
		m = &mirrorRecord{partitions: map[segment.TopicPartition]*partitionRecord{}}
		table[r.Mirror] = m
	}
	switch r.Type {
	case recordMirrorSource:
		m.sourceClusterID, m.epochPolicy = r.SourceClusterID, r.EpochPolicy
	case recordPartitionState:
		p := m.partition(r.Topic, r.Partition)
		p.state, p.cause, p.attempts, p.text = r.State, r.Cause, int(r.Attempts), r.Text
		if r.Shape != (logShape{}) {
			p.shape = r.Shape
		}
	case recordLostRange:
		p := m.partition(r.Topic, r.Partition)
		p.lost = appendLost(p.lost, r.Lost)
	case recordLastMirrorEpochs:
		for i := range r.Epochs {
			m.partition(r.Epochs[i].Topic, r.Epochs[i].Partition).epoch = &r.Epochs[i]
		}
	}
}

func (m *mirrorRecord) partition(topic string, index int32) *partitionRecord {
	tp := segment.TopicPartition{Topic: topic, Partition: index}
	p := m.partitions[tp]
	if p == nil {
		p = &partitionRecord{state: StateUnknown}
		m.partitions[tp] = p
	}
	return p
}

// appendLost adds a range. One that is there is not added again, so that a rewrite that was cut short repeats nothing;
// one that continues the newest is merged with it, so that a partition that is overtaken for ever stays small.
func appendLost(lost []LostSpan, next LostSpan) []LostSpan {
	if slices.Contains(lost, next) {
		return lost
	}
	if n := len(lost); n > 0 && next.From <= lost[n-1].To && next.From >= lost[n-1].From {
		lost[n-1].To = max(lost[n-1].To, next.To)
		lost[n-1].AtMs = next.AtMs
		return lost
	}
	return append(lost, next)
}

// stateRecords returns the records that say everything in table, in a fixed order.
func stateRecords(table stateImage) []StateRecord {
	var out []StateRecord
	for _, name := range slices.Sorted(maps.Keys(table)) {
		m := table[name]
		if m.sourceClusterID != "" {
			out = append(out, StateRecord{
				Type: recordMirrorSource, Mirror: name, SourceClusterID: m.sourceClusterID, EpochPolicy: m.epochPolicy,
			})
		}
		var epochs []LastMirrorEpoch
		for _, tp := range slices.SortedFunc(maps.Keys(m.partitions), compareTP) {
			p := m.partitions[tp]
			if p.state != StateUnknown {
				out = append(out, p.stateRecord(name, tp))
			}
			for _, lost := range p.lost {
				out = append(out, StateRecord{
					Type: recordLostRange, Mirror: name, Topic: tp.Topic, Partition: tp.Partition, Lost: lost,
				})
			}
			if p.epoch != nil {
				epochs = append(epochs, *p.epoch)
			}
		}
		if len(epochs) > 0 {
			out = append(out, StateRecord{Type: recordLastMirrorEpochs, Mirror: name, Epochs: epochs})
		}
	}
	return out
}

func (p *partitionRecord) stateRecord(mirror string, tp segment.TopicPartition) StateRecord {
	return StateRecord{
		Type: recordPartitionState, Mirror: mirror, Topic: tp.Topic, Partition: tp.Partition, State: p.state,
		Cause: p.cause, Attempts: int32(p.attempts), Text: p.text, Shape: p.shape,
	}
}

func compareTP(a, b segment.TopicPartition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}
