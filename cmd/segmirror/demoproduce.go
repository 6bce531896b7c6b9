package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// demoCodec is one idempotent producer's codec and its share of the topic's bytes. Gzip gets little: it is slow to
// write and makes no difference to a mirror.
type demoCodec struct {
	name  string
	codec kgo.CompressionCodec
	share float64
}

var demoCodecs = []demoCodec{
	{"none", kgo.NoCompression(), 0.60},
	{"lz4", kgo.Lz4Compression(), 0.15},
	{"snappy", kgo.SnappyCompression(), 0.12},
	{"zstd", kgo.ZstdCompression(), 0.10},
	{"gzip", kgo.GzipCompression(), 0.03},
}

// The shares of the demo's bytes: by idempotent producers, in transactions, by a plain producer.
const (
	shareClicks   = 0.85
	sharePayments = 0.10
	shareAudit    = 0.05

	demoValueBytes  = 1000
	demoBatchBytes  = 128 << 10
	recordsInTxn    = 200
	abortedEvery    = 4 // one transaction in so many is aborted
	openTxnTimeout  = 10 * time.Minute
	deliverWithin   = 30 * time.Second
	demoMinimumSize = 1 << 20
)

// demoProduced counts what was acknowledged.
type demoProduced struct {
	records   atomic.Int64
	committed atomic.Int64
	aborted   atomic.Int64
}

// demoProducers are the live clients of the demo.
type demoProducers struct {
	brokers  []string // host:port
	produced demoProduced
	text     []byte      // values are cut out of it
	open     *kgo.Client // holds the transaction that is left open
}

func newDemoProducers(brokers []string) *demoProducers {
	// Words in random order: it compresses about as well as a log of events does.
	words := []string{"click", "view", "basket", "pay", "user=", "page=/", "item-", "2026", "ok", "EUR", "\n"}
	random := rand.New(rand.NewPCG(1, 2))
	var text []byte
	for len(text) < 1<<20 {
		text = append(text, words[random.IntN(len(words))]...)
		text = binary.AppendUvarint(text, random.Uint64N(1<<21))
	}
	return &demoProducers{brokers: brokers, text: text}
}

// run writes about size bytes of values with all producers at once and returns when all is acknowledged.
func (p *demoProducers) run(ctx context.Context, size int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	errs := make([]error, len(demoCodecs)+2)
	start := func(i int, work func() error) {
		wait.Go(func() {
			// One failed producer ends the demo, so the others need not finish.
			if errs[i] = work(); errs[i] != nil {
				cancel()
			}
		})
	}
	for i, codec := range demoCodecs {
		start(i, func() error { return p.idempotent(ctx, codec, recordsOf(size, shareClicks*codec.share)) })
	}
	start(len(demoCodecs), func() error { return p.transactions(ctx, recordsOf(size, sharePayments)) })
	start(len(demoCodecs)+1, func() error { return p.plain(ctx, recordsOf(size, shareAudit)) })
	wait.Wait()
	return errors.Join(errs...)
}

func recordsOf(size int64, share float64) int {
	return max(10, int(float64(size)*share/demoValueBytes))
}

func (p *demoProducers) client(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(p.brokers...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(demoBatchBytes),
		kgo.ProducerLinger(5 * time.Millisecond),
		kgo.RecordDeliveryTimeout(deliverWithin),
	}, opts...)...)
}

// value returns the n-th record's value, a piece of the text.
func (p *demoProducers) value(n int) []byte {
	at := (n * 7919) % (len(p.text) - demoValueBytes)
	return p.text[at : at+demoValueBytes]
}

func (p *demoProducers) idempotent(ctx context.Context, codec demoCodec, records int) error {
	client, err := p.client(kgo.ProducerBatchCompression(codec.codec))
	if err != nil {
		return err
	}
	defer client.Close()
	return p.produce(ctx, client, records, func(n int) *kgo.Record {
		return &kgo.Record{
			Topic: topicClicks, Partition: int32(n/100) % partitionsOf(topicClicks), Key: fmt.Appendf(nil, "user-%d", n%997),
			Value: p.value(n),
		}
	})
}

// plain writes without idempotence what parsers trip over: null keys, null values, headers, empty values.
func (p *demoProducers) plain(ctx context.Context, records int) error {
	client, err := p.client(kgo.DisableIdempotentWrite(), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return err
	}
	defer client.Close()
	return p.produce(ctx, client, records, func(n int) *kgo.Record {
		record := &kgo.Record{Topic: topicAudit, Value: p.value(n)}
		switch n % 4 {
		case 0:
			record.Key, record.Value = fmt.Appendf(nil, "key-%d", n), nil
		case 1:
			record.Headers = []kgo.RecordHeader{{Key: "trace", Value: fmt.Appendf(nil, "%d", n)}, {Key: "empty"}}
		case 2:
			record.Value = []byte{}
		}
		return record
	})
}

// produce sends n records made by next and waits until all are acknowledged.
func (p *demoProducers) produce(ctx context.Context, client *kgo.Client, n int, next func(int) *kgo.Record) error {
	var first kgo.FirstErrPromise
	for i := range n {
		ack := first.Promise()
		client.Produce(ctx, next(i), func(record *kgo.Record, err error) {
			if err == nil {
				p.produced.records.Add(1)
			}
			ack(record, err)
		})
	}
	if err := client.Flush(ctx); err != nil {
		return fmt.Errorf("producer: %w", err)
	}
	if err := first.Err(); err != nil {
		return fmt.Errorf("producer: %w", err)
	}
	return nil
}

// transactions writes committed and aborted transactions in turn.
func (p *demoProducers) transactions(ctx context.Context, records int) error {
	client, err := p.client(kgo.TransactionalID("demo-payments"), kgo.ProducerBatchCompression(kgo.Lz4Compression()))
	if err != nil {
		return err
	}
	defer client.Close()
	for txn := 0; records > 0; txn++ {
		commit := kgo.TryCommit
		if txn%abortedEvery == abortedEvery-1 {
			commit = kgo.TryAbort
		}
		if err := p.transaction(ctx, client, min(records, recordsInTxn)); err != nil {
			return err
		}
		if err := client.EndTransaction(ctx, commit); err != nil {
			return fmt.Errorf("transaction: %w", err)
		}
		if commit == kgo.TryCommit {
			p.produced.committed.Add(1)
		} else {
			p.produced.aborted.Add(1)
		}
		records -= recordsInTxn
	}
	return nil
}

func (p *demoProducers) transaction(ctx context.Context, client *kgo.Client, records int) error {
	if err := client.BeginTransaction(); err != nil {
		return fmt.Errorf("transaction: %w", err)
	}
	return p.produce(ctx, client, records, func(n int) *kgo.Record {
		return &kgo.Record{Topic: topicPayments, Partition: int32(n) % partitionsOf(topicPayments), Value: p.value(n)}
	})
}

// leaveOpen begins a transaction in every partition of payments and does not end it. close releases its client.
func (p *demoProducers) leaveOpen(ctx context.Context) error {
	client, err := p.client(kgo.TransactionalID("demo-left-open"), kgo.TransactionTimeout(openTxnTimeout))
	if err != nil {
		return err
	}
	p.open = client
	return p.transaction(ctx, client, recordsInTxn)
}

func (p *demoProducers) close() {
	if p.open != nil {
		p.open.Close()
	}
}

func partitionsOf(topic string) int32 {
	for _, t := range demoTopics {
		if t.name == topic {
			return t.partitions
		}
	}
	return 1
}
