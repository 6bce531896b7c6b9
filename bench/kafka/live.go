package kafka

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// LiveTopic says how live producers write to one topic.
type LiveTopic struct {
	Name          string
	Partitions    int
	Codecs        []string // taken in turn, batch by batch; empty means none
	Plain         bool     // without producer ids
	Transactional bool     // every third transaction aborts
	Keys          int      // keys are drawn from so many; 0: any key, sometimes null
	ValueBytes    int      // values are shorter than this; 0 means 900
	Interval      time.Duration
}

// Live writes to a set of topics until it is stopped. Leader moves, restarts and fenced producers do not end it: what
// fails is counted and tried anew.
type Live struct {
	cluster *Cluster
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	batches atomic.Int64
	records atomic.Int64
	errors  atomic.Int64
	lastErr atomic.Pointer[error]
}

// LiveStats counts what live producers did.
type LiveStats struct {
	Batches, Records, Errors int64
	LastErr                  error // of the last attempt that failed, nil if none did
}

// StartLive starts one producer a topic and codec.
func (c *Cluster) StartLive(ctx context.Context, topics ...LiveTopic) *Live {
	ctx, cancel := context.WithCancel(ctx)
	l := &Live{cluster: c, cancel: cancel}
	for i, t := range topics {
		codecs := t.Codecs
		if len(codecs) == 0 {
			codecs = []string{"none"}
		}
		for j, name := range codecs {
			w := liveWriter{live: l, topic: t, codec: name, seed: uint64(i*100 + j)}
			l.wg.Go(func() { w.run(ctx) })
		}
	}
	return l
}

// Stop ends the producers, waits for them and returns what they did. A batch that is on its way is waited for, so that
// none arrives later; an unfinished transaction stays open.
func (l *Live) Stop() LiveStats {
	l.cancel()
	l.wg.Wait()
	return l.Stats()
}

// Stats counts what has been done so far.
func (l *Live) Stats() LiveStats {
	s := LiveStats{Batches: l.batches.Load(), Records: l.records.Load(), Errors: l.errors.Load()}
	if err := l.lastErr.Load(); err != nil {
		s.LastErr = *err
	}
	return s
}

// roundTimeout bounds one batch or transaction of a live producer.
const roundTimeout = 30 * time.Second

// liveWriter is one producer of a Live and its seeded randomness.
type liveWriter struct {
	live  *Live
	topic LiveTopic
	codec string
	seed  uint64
}

// run writes until ctx is done, with a new producer after each failure.
func (w liveWriter) run(ctx context.Context) {
	rng := rand.New(rand.NewPCG(w.seed, 1))
	for ctx.Err() == nil {
		if err := w.produce(ctx, rng); err != nil && ctx.Err() == nil {
			w.live.errors.Add(1)
			w.live.lastErr.Store(&err)
		}
	}
}

// produce makes a producer and writes with it until something fails.
func (w liveWriter) produce(ctx context.Context, rng *rand.Rand) error {
	cfg := ProducerConfig{Codec: w.codec, Plain: w.topic.Plain}
	if w.topic.Transactional {
		cfg.TransactionalID = fmt.Sprintf("live-%s-%s", w.topic.Name, w.codec)
		cfg.TxnTimeout = 10 * time.Minute // one that is cut off by Stop stays open while tests compare
	}
	p, err := w.live.cluster.NewProducer(cfg)
	if err != nil {
		return err
	}
	defer p.Close()
	interval := w.topic.Interval
	if interval == 0 {
		interval = 20 * time.Millisecond
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := w.round(ctx, p, rng, n); err != nil {
			return err
		}
	}
}

// round writes a batch to one partition, or a transaction over some of them. When stop is done it ends between two
// requests: one that was sent and not waited for would still be carried out, at any time.
func (w liveWriter) round(stop context.Context, p *Producer, rng *rand.Rand, n int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(stop), roundTimeout)
	defer cancel()
	if !w.topic.Transactional {
		return w.send(ctx, p, rng)
	}
	if err := p.Begin(); err != nil {
		return err
	}
	for range 1 + rng.IntN(4) {
		if stop.Err() != nil {
			return stop.Err()
		}
		if err := w.send(ctx, p, rng); err != nil {
			return err
		}
	}
	if n%3 == 2 {
		return p.Abort(ctx)
	}
	return p.Commit(ctx)
}

func (w liveWriter) send(ctx context.Context, p *Producer, rng *rand.Rand) error {
	records := make([]*kgo.Record, 1+rng.IntN(20))
	for i := range records {
		records[i] = w.record(rng)
	}
	if err := p.Send(ctx, w.topic.Name, int32(rng.IntN(max(w.topic.Partitions, 1))), records...); err != nil {
		return err
	}
	w.live.batches.Add(1)
	w.live.records.Add(int64(len(records)))
	return nil
}

// record draws a record: keys and values of many sizes, some null, some headers; half random bytes, half compressible.
func (w liveWriter) record(rng *rand.Rand) *kgo.Record {
	r := &kgo.Record{Key: fmt.Appendf(nil, "key-%d", rng.IntN(max(w.topic.Keys, 1000)))}
	if w.topic.Keys > 0 {
		r.Key = fmt.Appendf(nil, "key-%d", rng.IntN(w.topic.Keys))
	} else if rng.IntN(8) == 0 {
		r.Key = nil
	}
	if rng.IntN(16) > 0 {
		r.Value = make([]byte, rng.IntN(cmp.Or(w.topic.ValueBytes, 900)))
		for i := 0; i+8 <= len(r.Value)/2; i += 8 {
			binary.BigEndian.PutUint64(r.Value[i:], rng.Uint64())
		}
	}
	if rng.IntN(4) == 0 {
		r.Headers = []kgo.RecordHeader{{Key: "trace", Value: []byte{1, 2, 3}}, {Key: "empty", Value: nil}}
	}
	return r
}
