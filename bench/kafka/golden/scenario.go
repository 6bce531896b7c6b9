package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"segmirror/bench/kafka"
)

// topic is one topic of the images and what it is there to show.
type topic struct {
	Name    string            `json:"name"`
	Configs map[string]string `json:"configs,omitempty"`
	Shows   string            `json:"shows"`
}

// topicConfigs hold for every topic: small indexes, so that the preallocated files of a killed broker stay small, and
// nothing deleted by age.
var topicConfigs = map[string]string{
	"internal.segment.bytes": "4000", "index.interval.bytes": "300", "segment.index.bytes": "240", "retention.ms": "-1",
}

// brokerProps write the checkpoints often, so that killed images have them, and let no producer expire.
var brokerProps = map[string]string{
	"log.flush.offset.checkpoint.interval.ms":       "500",
	"log.flush.start.offset.checkpoint.interval.ms": "500",
	"replica.high.watermark.checkpoint.interval.ms": "500",
	"transaction.state.log.segment.bytes":           "1048576",
	"offsets.topic.segment.bytes":                   "1048576",
	"log.index.size.max.bytes":                      "1024",
}

var topics = []topic{
	{Name: "codecs", Shows: "every codec, from idempotent producers and from producers without an id"},
	{
		Name:    "txn",
		Configs: map[string]string{"internal.segment.bytes": "1500"},
		Shows:   "committed, aborted, interleaved and open transactions, over several segments",
	},
	{
		Name: "compact",
		Configs: map[string]string{
			"internal.segment.bytes": "1200", "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01",
		},
		Shows: "compaction: offset gaps, a retained empty batch, tombstones and markers with a delete horizon",
	},
	{
		Name:    "trimmed",
		Configs: map[string]string{"internal.segment.bytes": "1500"},
		Shows:   "DeleteRecords: log start offset above 0 and inside a segment",
	},
	{
		Name:    "appendtime",
		Configs: map[string]string{"message.timestamp.type": "LogAppendTime"},
		Shows:   "LogAppendTime",
	},
	{
		Name:    "nulls",
		Configs: map[string]string{"index.interval.bytes": "100"},
		Shows:   "null and empty keys and values, headers, timestamps out of order",
	},
	{
		Name:    "epochs",
		Configs: map[string]string{"internal.segment.bytes": "1000"},
		Shows:   "several segments and leader epochs",
	},
	{Name: "empty", Shows: "a partition nothing was ever written to"},
}

func topicNamed(name string) topic {
	for _, t := range topics {
		if t.Name == name {
			return t
		}
	}
	panic("BUG: no topic " + name)
}

// record makes a record with readable bytes.
func record(key, value string) *kgo.Record {
	return kgo.KeyStringRecord(key, value)
}

// filler makes n records of about size bytes each.
func filler(name string, n, size int) []*kgo.Record {
	records := make([]*kgo.Record, n)
	for i := range records {
		value := fmt.Sprintf("%s record %d ", name, i)
		records[i] = record(fmt.Sprintf("%s-%d", name, i), value+strings.Repeat("x", max(size-len(value), 0)))
	}
	return records
}

// with runs f with a new producer and closes it.
func (w *writer) with(cfg kafka.ProducerConfig, f func(p *kafka.Producer) error) error {
	p, err := w.cluster.NewProducer(cfg)
	if err != nil {
		return err
	}
	defer p.Close()
	return f(p)
}

// first writes what comes before the first restart.
func (w *writer) first(ctx context.Context) error {
	return errors.Join(w.codecs(ctx), w.transactions(ctx), w.compaction(ctx), w.trim(ctx), w.appendTime(ctx),
		w.nulls(ctx), w.several(ctx, "epochs", 8))
}

// second writes the part of leader epoch 2 and leaves a transaction open.
func (w *writer) second(ctx context.Context) error {
	return errors.Join(w.several(ctx, "epochs", 8), w.several(ctx, "trimmed", 3), w.open(ctx, "open-clean"))
}

// third writes what the kill leaves unflushed.
func (w *writer) third(ctx context.Context) error {
	return errors.Join(w.several(ctx, "epochs", 5), w.several(ctx, "codecs", 3), w.transactions(ctx),
		w.open(ctx, "open-killed"))
}

func (w *writer) codecs(ctx context.Context) error {
	for _, codec := range kafka.Codecs() {
		for _, plain := range []bool{false, true} {
			err := w.with(kafka.ProducerConfig{Codec: codec, Plain: plain}, func(p *kafka.Producer) error {
				return errors.Join(p.Send(ctx, "codecs", 0, filler(codec, 6, 80)...),
					p.Send(ctx, "codecs", 0, filler(codec, 1, 10)...))
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// several writes n batches of an idempotent producer.
func (w *writer) several(ctx context.Context, topic string, n int) error {
	return w.with(kafka.ProducerConfig{}, func(p *kafka.Producer) error {
		for i := range n {
			if err := p.Send(ctx, topic, 0, filler(topic, 1+i%3, 90)...); err != nil {
				return err
			}
		}
		return nil
	})
}

// transactions commits and aborts, alone and with two producers interleaved, across segments.
func (w *writer) transactions(ctx context.Context) error {
	return w.with(kafka.ProducerConfig{TransactionalID: "tx-a"}, func(a *kafka.Producer) error {
		return w.with(kafka.ProducerConfig{TransactionalID: "tx-b"}, func(b *kafka.Producer) error {
			for round := range 3 {
				send := func(p *kafka.Producer, name string) error {
					return p.Send(ctx, "txn", 0, filler(fmt.Sprintf("%s-%d", name, round), 2, 100)...)
				}
				endA, endB := a.Commit, b.Abort
				if round == 1 {
					endA, endB = a.Abort, b.Commit
				}
				err := errors.Join(a.Begin(), send(a, "a"), b.Begin(), send(b, "b"), send(a, "a"), endA(ctx), send(b, "b"),
					endB(ctx))
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// open leaves a transaction open.
func (w *writer) open(ctx context.Context, id string) error {
	return w.with(kafka.ProducerConfig{TransactionalID: id}, func(p *kafka.Producer) error {
		return errors.Join(p.Begin(), p.Send(ctx, "txn", 0, filler(id, 2, 60)...))
	})
}

// compaction writes keys over and over until the cleaner has left gaps and an empty batch.
func (w *writer) compaction(ctx context.Context) error {
	send := func(cfg kafka.ProducerConfig, records ...*kgo.Record) error {
		return w.with(cfg, func(p *kafka.Producer) error { return p.Send(ctx, "compact", 0, records...) })
	}
	// The batch of this producer is emptied and kept, because it holds its last sequence.
	err := send(kafka.ProducerConfig{}, record("k0", "first"), record("k1", "first"))
	err = errors.Join(err, w.with(kafka.ProducerConfig{TransactionalID: "compact"}, func(p *kafka.Producer) error {
		return errors.Join(p.Begin(), p.Send(ctx, "compact", 0, record("k2", "aborted")), p.Abort(ctx),
			p.Begin(), p.Send(ctx, "compact", 0, record("k3", "committed"), record("k4", "committed")), p.Commit(ctx))
	}))
	err = errors.Join(err, send(kafka.ProducerConfig{Codec: "zstd"}, record("k4", "gone"), &kgo.Record{Key: []byte("k4")}))
	ninety := strings.Repeat("y", 90)
	for i := range 12 {
		again, own := record(fmt.Sprintf("k%d", i%4), fmt.Sprintf("round %d", i)), record(fmt.Sprintf("own-%d", i), ninety)
		err = errors.Join(err, send(kafka.ProducerConfig{Codec: kafka.Codecs()[i%5]}, again, own))
	}
	if err != nil {
		return err
	}
	return await(ctx, "the cleaner to empty a batch", func() (bool, error) { return hasEmptyBatch(w.dir("compact")) })
}

// trim writes several segments and moves the log start offset into the middle of one.
func (w *writer) trim(ctx context.Context) error {
	if err := w.several(ctx, "trimmed", 30); err != nil {
		return err
	}
	if err := w.cluster.DeleteRecords(ctx, "trimmed", 0, 25); err != nil {
		return err
	}
	return await(ctx, "whole segments to be deleted", func() (bool, error) {
		files, err := filepath.Glob(filepath.Join(w.dir("trimmed"), "*"))
		for _, f := range files {
			if strings.HasSuffix(f, ".deleted") || strings.HasPrefix(filepath.Base(f), strings.Repeat("0", 20)) {
				return false, err
			}
		}
		return true, err
	})
}

func (w *writer) appendTime(ctx context.Context) error {
	return w.with(kafka.ProducerConfig{}, func(p *kafka.Producer) error {
		return errors.Join(p.Send(ctx, "appendtime", 0, filler("appendtime", 3, 20)...),
			p.Send(ctx, "appendtime", 0, filler("appendtime", 9, 60)...),
			p.Send(ctx, "appendtime", 0, filler("appendtime", 2, 60)...))
	})
}

func (w *writer) nulls(ctx context.Context) error {
	return w.with(kafka.ProducerConfig{}, func(p *kafka.Producer) error {
		headers := []kgo.RecordHeader{{Key: "h", Value: []byte("v")}, {Key: "null", Value: nil}, {Key: "", Value: []byte{}}}
		batches := [][]*kgo.Record{
			{{}, {Key: []byte{}, Value: []byte{}}, {Value: []byte("no key")}, {Key: []byte("no value")}},
			{{Key: []byte("k"), Value: []byte("v"), Headers: headers}},
			filler("nulls", 4, 50), filler("nulls", 4, 50), filler("nulls", 4, 50),
		}
		for _, b := range batches {
			if err := p.Send(ctx, "nulls", 0, b...); err != nil {
				return err
			}
		}
		return nil
	})
}

// hasEmptyBatch says whether a .log file of the directory holds a batch without records.
func hasEmptyBatch(dir string) (bool, error) {
	const lengthPos, countPos, headerSize = 8, 57, 61
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return false, err
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if errors.Is(err, os.ErrNotExist) {
			return false, nil // the cleaner is replacing it
		}
		if err != nil {
			return false, err
		}
		for len(data) >= headerSize {
			if binary.BigEndian.Uint32(data[countPos:]) == 0 {
				return true, nil
			}
			data = data[min(len(data), lengthPos+4+int(binary.BigEndian.Uint32(data[lengthPos:]))):]
		}
	}
	return false, nil
}
