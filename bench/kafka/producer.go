package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ProducerConfig says how a Producer writes.
type ProducerConfig struct {
	Codec           string        // none, gzip, snappy, lz4 or zstd; empty means none
	Plain           bool          // not idempotent: batches without a producer id
	TransactionalID string        // makes the producer transactional
	TxnTimeout      time.Duration // 0 means 10 minutes, so that an open transaction stays open
	BatchBytes      int32         // largest batch; 0 means 1 MB
}

// Producer writes records to given partitions of one cluster with franz-go.
type Producer struct {
	cl *kgo.Client
}

// codecs maps Kafka's codec names.
func codec(name string) (kgo.CompressionCodec, error) {
	switch name {
	case "", "none":
		return kgo.NoCompression(), nil
	case "gzip":
		return kgo.GzipCompression(), nil
	case "snappy":
		return kgo.SnappyCompression(), nil
	case "lz4":
		return kgo.Lz4Compression(), nil
	case "zstd":
		return kgo.ZstdCompression(), nil
	}
	return kgo.CompressionCodec{}, fmt.Errorf("no codec %q", name)
}

// Codecs are the names ProducerConfig.Codec knows, in the order of their ids.
func Codecs() []string { return []string{"none", "gzip", "snappy", "lz4", "zstd"} }

// NewProducer returns a producer of the cluster, which the caller closes. It retries across leader moves and restarts
// for as long as the context of a Send allows.
func (c *Cluster) NewProducer(cfg ProducerConfig) (*Producer, error) {
	compression, err := codec(cfg.Codec)
	if err != nil {
		return nil, err
	}
	opts := []kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(compression),
		kgo.ProducerLinger(0), kgo.MaxBufferedRecords(100_000), kgo.ProducerOnDataLossDetected(func(string, int32) {}),
	}
	if cfg.BatchBytes > 0 {
		opts = append(opts, kgo.ProducerBatchMaxBytes(cfg.BatchBytes))
	}
	if cfg.Plain {
		opts = append(opts, kgo.DisableIdempotentWrite())
	}
	if cfg.TransactionalID != "" {
		timeout := cfg.TxnTimeout
		if timeout == 0 {
			timeout = 10 * time.Minute
		}
		opts = append(opts, kgo.TransactionalID(cfg.TransactionalID), kgo.TransactionTimeout(timeout))
	}
	cl, err := c.NewClient(opts...)
	if err != nil {
		return nil, err
	}
	return &Producer{cl: cl}, nil
}

// Send writes records to one partition and waits until they are acknowledged. Records sent together make one batch as
// long as they fit one; the record's Topic and Partition are set here.
func (p *Producer) Send(ctx context.Context, topic string, partition int32, records ...*kgo.Record) error {
	for _, r := range records {
		r.Topic, r.Partition = topic, partition
	}
	if err := p.cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("produce to %s-%d: %w", topic, partition, err)
	}
	return nil
}

// Begin starts a transaction. Commit and Abort end it; a Producer closed without either leaves it open.
func (p *Producer) Begin() error { return p.cl.BeginTransaction() }

// Commit ends the transaction with COMMIT markers.
func (p *Producer) Commit(ctx context.Context) error {
	if err := p.cl.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// Abort ends the transaction with ABORT markers.
func (p *Producer) Abort(ctx context.Context) error {
	if err := p.cl.AbortBufferedRecords(ctx); err != nil {
		return fmt.Errorf("abort: %w", err)
	}
	if err := p.cl.EndTransaction(ctx, kgo.TryAbort); err != nil {
		return fmt.Errorf("abort: %w", err)
	}
	return nil
}

// Client is the franz-go client underneath.
func (p *Producer) Client() *kgo.Client { return p.cl }

// Close drops the producer's connections. An open transaction stays open until it times out.
func (p *Producer) Close() { p.cl.Close() }
