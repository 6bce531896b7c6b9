package replicator

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"segmirror/segment"
)

const (
	stateSegmentBytes = 16 << 20
	stateRewriteBytes = 1 << 20 // below this the state log is never rewritten
	stateBatchRecords = 1000    // records a batch holds at most
)

// errStateLogClosed is an Append after the agent began to close.
var errStateLogClosed = errors.New("state log is closed")

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
//
// Append returns when its records are durable; records that wait together share one sync. When the log has grown to
// several times what it says, all of it is written again behind the end and the log start moves there: a crash in
// between leaves both, which replay to the same.
type stateLog struct {
	dir    *segment.LogDir
	logger *slog.Logger
	writes chan stateWrite // 64 slots: writers that wait for one sync together

	stopping chan struct{}
	ended    chan struct{} // closed by the writer when it returns

	// owner: the writer goroutine
	log  *segment.Log
	live int64 // bytes of the newest rewrite

	// guarded by mu
	mu      sync.Mutex
	mirrors map[string]*mirrorRecord
	failed  error // why the newest append failed
}

type stateWrite struct {
	records []StateRecord
	result  chan error // one slot
}

var stateTopicPartition = segment.TopicPartition{Topic: stateTopic}

// stateTopicID is the id under which the state log is bound to its own cluster: recovery takes a hole in a bound log
// for lost data and cuts behind it, where it would let one stand in a log that may have been compacted.
var stateTopicID = segment.TopicID{15: 16}

func stateLogConfig() segment.Config {
	cfg := segment.DefaultConfig()
	cfg.SegmentBytes = stateSegmentBytes
	cfg.SegmentMs = 1<<63 - 1
	return cfg
}

// openStateLog opens and replays the state log of dir and starts its writer; close stops it.
func openStateLog(dir *segment.LogDir, logger *slog.Logger) (*stateLog, error) {
	s := &stateLog{
		dir:      dir,
		logger:   logger,
		writes:   make(chan stateWrite, 64),
		stopping: make(chan struct{}),
		ended:    make(chan struct{}),
		mirrors:  map[string]*mirrorRecord{},
	}
	if err := s.reopen(); err != nil {
		return nil, err
	}
	go s.run() // stopped and waited for by close
	return s, nil
}

func (s *stateLog) reopen() error {
	if s.log != nil {
		if err := s.log.Close(); err != nil {
			s.logger.Warn("closing the state log", slog.Any("err", err))
		}
		s.log = nil
	}
	log, report, err := s.dir.OpenLog(stateTopicPartition, stateLogConfig())
	if err != nil {
		return err
	}
	logRecovery(s.logger, stateTopicPartition, report)
	if err := log.Bind(segment.SourceID{ClusterID: s.dir.ClusterID(), TopicID: stateTopicID}); err != nil {
		return errors.Join(err, log.Close())
	}
	table := map[string]*mirrorRecord{}
	if err := replayState(log, table); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", log.Dir(), err), log.Close())
	}
	s.log = log
	s.mu.Lock()
	s.mirrors = table
	s.mu.Unlock()
	return nil
}

// replayState applies every record from the log start on.
func replayState(log *segment.Log, table map[string]*mirrorRecord) error {
	for offset := log.LogStartOffset(); offset < log.LogEndOffset(); {
		slice, err := log.Read(offset, 1<<20, segment.ReadLogEnd)
		if err != nil {
			return err
		}
		err = slice.View(func(b []byte) error { return replayBatches(b, table) })
		next := slice.NextOffset()
		if err = errors.Join(err, slice.Release()); err != nil {
			return err
		}
		if next <= offset {
			return fmt.Errorf("%w: nothing at offset %d", ErrStateRecord, offset)
		}
		offset = next
	}
	return nil
}

func replayBatches(b []byte, table map[string]*mirrorRecord) error {
	batches := segment.NewBatchIterator(b)
	for batches.Next() {
		batch := batches.Batch()
		if batch.Control() {
			continue
		}
		if err := eachRecord(batch, func(key, value []byte) error {
			r, err := DecodeStateRecord(key, value)
			if err != nil {
				return fmt.Errorf("batch at offset %d: %w", batch.BaseOffset(), err)
			}
			applyState(table, &r)
			return nil
		}); err != nil {
			return err
		}
	}
	return batches.Err()
}

// applyState merges one record into table. A later record wins; a mirror's tombstone of its states forgets them.
func applyState(table map[string]*mirrorRecord, r *StateRecord) {
	m := table[r.Mirror]
	if m == nil {
		m = &mirrorRecord{partitions: map[segment.TopicPartition]*partitionRecord{}}
		table[r.Mirror] = m
	}
	if r.Tombstone {
		if r.Type == recordPartitionState {
			delete(table, r.Mirror)
		}
		return
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

// appendLost adds a range; one that continues or repeats the newest is merged with it, so that a rewrite that was
// cut short and a partition that is overtaken for ever stay small.
func appendLost(lost []LostSpan, next LostSpan) []LostSpan {
	if n := len(lost); n > 0 && next.From <= lost[n-1].To && next.From >= lost[n-1].From {
		lost[n-1].To = max(lost[n-1].To, next.To)
		lost[n-1].AtMs = next.AtMs
		return lost
	}
	if slices.Contains(lost, next) {
		return lost
	}
	return append(lost, next)
}

// mirror returns a copy of what is stored of a mirror, empty if nothing is. Any goroutine.
func (s *stateLog) mirror(name string) mirrorRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := mirrorRecord{partitions: map[segment.TopicPartition]*partitionRecord{}}
	m := s.mirrors[name]
	if m == nil {
		return out
	}
	out.sourceClusterID, out.epochPolicy = m.sourceClusterID, m.epochPolicy
	for tp, p := range m.partitions {
		c := *p
		c.lost = slices.Clone(p.lost)
		out.partitions[tp] = &c
	}
	return out
}

// err returns why the newest append failed, nil if it did not. Any goroutine.
func (s *stateLog) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// append makes records durable and returns; on an error none of them counts. Any goroutine.
func (s *stateLog) append(records ...StateRecord) error {
	if len(records) == 0 {
		return nil
	}
	w := stateWrite{records: records, result: make(chan error, 1)}
	select {
	case s.writes <- w:
	case <-s.stopping:
		return errStateLogClosed
	}
	select {
	case err := <-w.result:
		return err
	case <-s.stopping:
		select {
		case err := <-w.result:
			return err
		case <-s.ended:
			return errStateLogClosed
		}
	}
}

func (s *stateLog) run() {
	defer close(s.ended)
	for {
		select {
		case w := <-s.writes:
			s.write(w)
		case <-s.stopping:
			for {
				select {
				case w := <-s.writes:
					s.write(w)
				default:
					return
				}
			}
		}
	}
}

// write commits w and everything that waits with it, with one sync.
func (s *stateLog) write(w stateWrite) {
	group := []stateWrite{w}
	for len(group) < cap(s.writes) {
		select {
		case more := <-s.writes:
			group = append(group, more)
			continue
		default:
		}
		break
	}
	var records []StateRecord
	for _, g := range group {
		records = append(records, g.records...)
	}
	err := s.commit(records)
	s.mu.Lock()
	s.failed = err
	if err == nil {
		for i := range records {
			applyState(s.mirrors, &records[i])
		}
	}
	s.mu.Unlock()
	for _, g := range group {
		g.result <- err
	}
	if err == nil {
		s.maybeRewrite()
	}
}

func (s *stateLog) commit(records []StateRecord) error {
	if s.log == nil || s.log.Failed() != nil {
		if err := s.reopen(); err != nil {
			return fmt.Errorf("state log: %w", err)
		}
	}
	if err := s.appendRecords(records); err != nil {
		return fmt.Errorf("state log: %w", err)
	}
	offset, err := s.log.Flush()
	if err != nil {
		return fmt.Errorf("state log: %w", err)
	}
	s.log.MarkFlushed(offset)
	s.log.UpdateHighWatermark(offset)
	return nil
}

func (s *stateLog) appendRecords(records []StateRecord) error {
	var batch []byte
	for chunk := range slices.Chunk(records, stateBatchRecords) {
		batch = appendStateBatch(batch[:0], s.log.LogEndOffset(), time.Now().UnixMilli(), chunk)
		if _, err := s.log.AppendAsFollower(batch, -1); err != nil {
			return err
		}
	}
	return nil
}

// maybeRewrite writes the whole state again once the log is several times as long, and drops what lies before it.
func (s *stateLog) maybeRewrite() {
	if s.log.Size() < max(stateRewriteBytes, 4*s.live) {
		return
	}
	if err := s.rewrite(); err != nil {
		s.logger.Warn("rewriting the state log", slog.Any("err", err))
	}
}

func (s *stateLog) rewrite() error {
	s.mu.Lock()
	records := stateRecords(s.mirrors)
	s.mu.Unlock()
	from := s.log.LogEndOffset()
	if err := s.log.Roll(); err != nil {
		return err
	}
	if err := s.appendRecords(records); err != nil {
		return err
	}
	offset, err := s.log.Flush()
	if err != nil {
		return err
	}
	s.log.MarkFlushed(offset)
	s.log.UpdateHighWatermark(offset)
	_, err = s.log.AdvanceLogStart(from)
	s.live = s.log.Size()
	return err
}

// stateRecords returns the records that say everything in table, in a fixed order.
func stateRecords(table map[string]*mirrorRecord) []StateRecord {
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

// close stops the writer; what was queued is written. The log itself is closed with its log directory.
func (s *stateLog) close() {
	close(s.stopping)
	<-s.ended
}
