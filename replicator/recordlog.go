package replicator

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"segmirror/segment"
)

const (
	recordLogSegmentBytes = 16 << 20
	recordLogRewriteBytes = 1 << 20 // below this a record log is never rewritten
	recordLogBatchRecords = 1000    // records a batch holds at most
	recordLogBatchBytes   = 4 << 20 // of a batch that may not be cut in two
	recordLogGroup        = 64      // writes that share one sync at most
)

// errRecordLogClosed is an append after the agent began to close.
var errRecordLogClosed = errors.New("the log is closed")

// errChangeTooLarge is an append that cannot be one batch.
var errChangeTooLarge = errors.New("too much for one change")

// recordKind is what a recordLog of records R that say an image I is made of.
type recordKind[R, I any] struct {
	name  string // for messages
	tp    segment.TopicPartition
	id    segment.TopicID // see recordLog.reopen
	whole bool            // the records of one append are one batch: all of them or none, whatever happens

	config       segment.Config
	rewriteBytes int64 // the log is not rewritten below this

	empty  func() I
	decode func(key, value []byte) (R, error) // a nil key or value is a null one
	encode func(r *R) (key, value []byte)     // nil is null
	apply  func(image I, r *R)
	all    func(image I) []R // the records that say everything in image, in a fixed order
}

// recordLog is a Kafka log of the agent's own: what its records say survives a restart.
//
// append returns when its records are durable; appends that wait together share one sync. What could not be made
// durable is cut off again, so that nothing counts that was refused. When the log has grown to several times what it
// says, all of it is written again behind the end and the log start moves there: a crash in between leaves both, which
// replay to the same.
type recordLog[R, I any] struct {
	kind   recordKind[R, I]
	dir    *segment.LogDir
	logger *slog.Logger
	writes chan recordWrite[R] // recordLogGroup slots: writers that wait for one sync together

	stopping chan struct{}
	ended    chan struct{} // closed by the writer when it returns

	// owner: the writer goroutine
	log   *segment.Log
	acked int64 // end of the newest append that was answered well, -1 before the log was first opened
	live  int64 // bytes of the newest rewrite

	// guarded by mu
	mu     sync.Mutex
	image  I
	failed error // why the newest append failed
}

type recordWrite[R any] struct {
	records []R
	result  chan error // one slot
}

// openRecordLog opens and replays the log of kind in dir and starts its writer; close stops it.
func openRecordLog[R, I any](
	kind recordKind[R, I], dir *segment.LogDir, logger *slog.Logger,
) (*recordLog[R, I], error) {
	s := &recordLog[R, I]{
		kind:     kind,
		dir:      dir,
		logger:   logger,
		acked:    -1,
		writes:   make(chan recordWrite[R], recordLogGroup),
		stopping: make(chan struct{}),
		ended:    make(chan struct{}),
	}
	if err := s.reopen(); err != nil {
		return nil, err
	}
	go s.run() // stopped and waited for by close
	return s, nil
}

// recordLogConfig is what a record log is opened with.
func recordLogConfig() segment.Config {
	cfg := segment.DefaultConfig()
	cfg.SegmentBytes = recordLogSegmentBytes
	cfg.SegmentMs = 1<<63 - 1
	return cfg
}

// reopen opens the log, cuts what was appended and refused, and says anew what the log says.
//
// The log is bound to the agent's own cluster under a made-up topic id: recovery takes a hole in a bound log for lost
// data and cuts behind it, where it would let one stand in a log that may have been compacted.
func (s *recordLog[R, I]) reopen() error {
	if s.log != nil {
		if err := s.log.Close(); err != nil {
			s.logger.Warn("closing the "+s.kind.name, slog.Any("err", err))
		}
		s.log = nil
	}
	if s.acked > 0 && !s.dir.Exists(s.kind.tp) { // it would be made anew, empty
		return fmt.Errorf("%s is gone from %s", s.kind.tp, s.dir.Path())
	}
	log, report, err := s.dir.OpenLog(s.kind.tp, s.kind.config)
	if err != nil {
		return err
	}
	logRecovery(s.logger, s.kind.tp, report)
	if err := log.Bind(segment.SourceID{ClusterID: s.dir.ClusterID(), TopicID: s.kind.id}); err != nil {
		return errors.Join(err, log.Close())
	}
	if log.LogEndOffset() < s.acked {
		err := fmt.Errorf("%s ends at %d, acknowledged was what lies below %d", log.Dir(), log.LogEndOffset(), s.acked)
		return errors.Join(err, log.Close())
	}
	if s.acked >= 0 && log.LogEndOffset() > s.acked {
		if _, err := log.TruncateTo(s.acked); err != nil {
			return errors.Join(err, log.Close())
		}
	}
	image := s.kind.empty()
	if err := s.kind.replay(log, image); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", log.Dir(), err), log.Close())
	}
	s.log, s.acked = log, log.LogEndOffset()
	s.mu.Lock()
	s.image = image
	s.mu.Unlock()
	return nil
}

// replay applies every record from the log start on.
func (k *recordKind[R, I]) replay(log *segment.Log, image I) error {
	for offset := log.LogStartOffset(); offset < log.LogEndOffset(); {
		slice, err := log.Read(offset, 1<<20, segment.ReadLogEnd)
		if err != nil {
			return err
		}
		err = slice.View(func(b []byte) error { return k.replayBatches(b, image) })
		next := slice.NextOffset()
		if err = errors.Join(err, slice.Release()); err != nil {
			return err
		}
		if next <= offset {
			return fmt.Errorf("nothing at offset %d", offset)
		}
		offset = next
	}
	return nil
}

func (k *recordKind[R, I]) replayBatches(b []byte, image I) error {
	batches := segment.NewBatchIterator(b)
	for batches.Next() {
		batch := batches.Batch()
		if batch.Control() {
			continue
		}
		if err := eachRecord(batch, func(key, value []byte) error {
			r, err := k.decode(key, value)
			if err != nil {
				return fmt.Errorf("batch at offset %d: %w", batch.BaseOffset(), err)
			}
			k.apply(image, &r)
			return nil
		}); err != nil {
			return err
		}
	}
	return batches.Err()
}

// view lets use look at what the log says; nothing of the image may be kept. Any goroutine.
func (s *recordLog[R, I]) view(use func(image I)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	use(s.image)
}

// err returns why the newest append failed, nil if it did not. Any goroutine.
func (s *recordLog[R, I]) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// append makes records durable and returns; on an error none of them counts. Any goroutine.
func (s *recordLog[R, I]) append(records ...R) error {
	if len(records) == 0 {
		return nil
	}
	if err := s.kind.fits(records); err != nil {
		return err
	}
	w := recordWrite[R]{records: records, result: make(chan error, 1)}
	select {
	case s.writes <- w:
	case <-s.stopping:
		return fmt.Errorf("%s: %w", s.kind.name, errRecordLogClosed)
	}
	select {
	case err := <-w.result:
		return err
	case <-s.ended:
		select {
		case err := <-w.result:
			return err
		default:
			return fmt.Errorf("%s: %w", s.kind.name, errRecordLogClosed)
		}
	}
}

// fits refuses records that have to be one batch and are too many for it.
func (k *recordKind[R, I]) fits(records []R) error {
	if !k.whole {
		return nil
	}
	if len(records) > recordLogBatchRecords {
		return fmt.Errorf("%s: %w: %d records, at most %d", k.name, errChangeTooLarge, len(records), recordLogBatchRecords)
	}
	size := 0
	for i := range records {
		key, value := k.encode(&records[i])
		size += len(key) + len(value)
	}
	if size > recordLogBatchBytes {
		return fmt.Errorf("%s: %w: %d bytes, at most %d", k.name, errChangeTooLarge, size, recordLogBatchBytes)
	}
	return nil
}

func (s *recordLog[R, I]) run() {
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
func (s *recordLog[R, I]) write(w recordWrite[R]) {
	group := []recordWrite[R]{w}
	for waiting := true; waiting && len(group) < recordLogGroup; {
		select {
		case more := <-s.writes:
			group = append(group, more)
		default:
			waiting = false
		}
	}
	err := s.commit(group)
	s.mu.Lock()
	s.failed = err
	if err == nil {
		for _, g := range group {
			for i := range g.records {
				s.kind.apply(s.image, &g.records[i])
			}
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

func (s *recordLog[R, I]) commit(group []recordWrite[R]) error {
	if s.log == nil || s.log.Failed() != nil {
		if err := s.reopen(); err != nil {
			return fmt.Errorf("%s: %w", s.kind.name, err)
		}
	}
	err := s.appendGroup(group)
	if err == nil {
		s.acked = s.log.LogEndOffset()
		return nil
	}
	if undo := s.undo(); undo != nil { // the next append tries again, before it appends anything
		s.logger.Warn("what could not be stored could not be taken back yet", slog.String("log", s.kind.name),
			slog.Any("err", undo))
	}
	return fmt.Errorf("%s: %w", s.kind.name, err)
}

func (s *recordLog[R, I]) appendGroup(group []recordWrite[R]) error {
	for _, g := range group {
		if err := s.appendRecords(g.records); err != nil {
			return err
		}
	}
	return s.flush()
}

// undo cuts what was appended and is refused.
func (s *recordLog[R, I]) undo() error {
	if s.log.Failed() == nil {
		if _, err := s.log.TruncateTo(s.acked); err == nil {
			return nil
		}
	}
	return s.reopen()
}

func (s *recordLog[R, I]) flush() error {
	offset, err := s.log.Flush()
	if err != nil {
		return err
	}
	s.log.MarkFlushed(offset)
	s.log.UpdateHighWatermark(offset)
	return nil
}

func (s *recordLog[R, I]) appendRecords(records []R) error {
	var batch []byte
	for chunk := range slices.Chunk(records, recordLogBatchRecords) {
		batch = s.kind.appendBatch(batch[:0], s.log.LogEndOffset(), time.Now().UnixMilli(), chunk)
		if _, err := s.log.AppendAsFollower(batch, -1); err != nil {
			return err
		}
	}
	return nil
}

// appendBatch appends one uncompressed v2 batch that holds records, the first at baseOffset.
func (k *recordKind[R, I]) appendBatch(dst []byte, baseOffset, nowMs int64, records []R) []byte {
	var body []byte
	for i := range records {
		key, value := k.encode(&records[i])
		body = segment.AppendRecord(body, baseOffset, nowMs, &segment.Record{
			Offset: baseOffset + int64(i), TimestampMs: nowMs, Sequence: -1, Key: key, Value: value,
		})
	}
	return segment.AppendBatch(dst, &segment.BatchHeader{
		BaseOffset: baseOffset, LastOffsetDelta: int32(len(records) - 1), BaseTimestampMs: nowMs, MaxTimestampMs: nowMs,
		ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, RecordsCount: int32(len(records)),
	}, body)
}

// maybeRewrite writes everything again once the log is several times as long, and drops what lies before it.
func (s *recordLog[R, I]) maybeRewrite() {
	if s.log.Size() < max(s.kind.rewriteBytes, 4*s.live) {
		return
	}
	if err := s.rewrite(); err != nil {
		s.logger.Warn("rewriting the "+s.kind.name, slog.Any("err", err))
	}
}

func (s *recordLog[R, I]) rewrite() error {
	s.mu.Lock()
	records := s.kind.all(s.image)
	s.mu.Unlock()
	from := s.log.LogEndOffset()
	if err := s.log.Roll(); err != nil {
		return err
	}
	if err := s.appendRecords(records); err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	s.acked = s.log.LogEndOffset()
	_, err := s.log.AdvanceLogStart(from)
	s.live = s.log.Size()
	return err
}

// close stops the writer; what was queued is written. The log itself is closed with its log directory.
func (s *recordLog[R, I]) close() {
	close(s.stopping)
	<-s.ended
}

// eachRecord walks the records of an uncompressed v2 batch. key and value die with use; nil is a null one.
func eachRecord(batch segment.Batch, use func(key, value []byte) error) error {
	if batch.Codec() != 0 {
		return fmt.Errorf("batch at offset %d is compressed", batch.BaseOffset())
	}
	records := segment.NewRecordReader(batch, batch.Records())
	for {
		r, ok := records.Next()
		if !ok {
			break
		}
		if err := use(r.Key, r.Value); err != nil {
			return err
		}
	}
	if err := records.Err(); err != nil {
		return fmt.Errorf("batch at offset %d: %w", batch.BaseOffset(), err)
	}
	return nil
}
