package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"segmirror/bench/kafka"
	"segmirror/replicator"
)

// writeBulk produces about size bytes that do not compress, in batches of some ten kilobytes.
func writeBulk(t *testing.T, src *kafka.Cluster, p tp, size int) {
	t.Helper()
	client, err := src.NewClient(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(32<<10),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	value := bytes.Repeat([]byte("0123456789abcdef"), 256)
	var records []*kgo.Record
	for range size / len(value) {
		records = append(records, &kgo.Record{Topic: p.topic, Partition: p.partition, Value: value})
	}
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// fetcherOf returns the status of the fetcher of a mirror's only source broker in use.
func fetcherOf(a *agent) (out replicator.FetcherStatus) {
	for _, f := range a.Status().Mirrors[0].Fetchers {
		if f.Fetches > out.Fetches {
			out = f
		}
	}
	return out
}

// TestThrottle_SourceQuotaSlowsTheFetchAndIsShown sets a consumer_byte_rate on the fetcher's client id. Kafka lets
// through what the quota gives in its window, and more than that only later.
func TestThrottle_SourceQuotaSlowsTheFetchAndIsShown(t *testing.T) {
	const quota, size = 10_000, 400_000
	const atOnce = quota * quotaWindowSeconds * 11 / 20 // the second answer is a tenth too much
	src := source(t)
	p := tp{"throttle-quota", 0}
	createTopic(t, src, kafka.TopicSpec{Name: p.topic, Assignment: [][]int32{{1, 2}}})
	writeBulk(t, src, p, size)
	props := agentProps(src, t.TempDir(), "preserve", p.topic)
	props["node.id"], props["mirror.m.mirror.fetch.response.max.bytes"] = "78", fmt.Sprint(atOnce)
	name := "broker-78-fetcher-0-mirror-" + mirrorName
	set := func(op kadm.AlterClientQuotaOp) {
		answers, err := src.Admin().AlterClientQuotas(t.Context(), []kadm.AlterClientQuotaEntry{{
			Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: &name}}, Ops: []kadm.AlterClientQuotaOp{op},
		}})
		if err == nil {
			err = answers[0].Err
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	set(kadm.AlterClientQuotaOp{Key: "consumer_byte_rate", Value: quota})
	began := time.Now()
	a := startAgent(t, props)
	eventually(t, patience, "the quota to slow the mirror", func() (bool, string) {
		f := fetcherOf(a)
		return f.Throttled > 0, fmt.Sprintf("%+v", f)
	})
	set(kadm.AlterClientQuotaOp{Key: "consumer_byte_rate", Remove: true})
	a.awaitCaughtUp(src, p)
	fetcher := fetcherOf(a)
	took := time.Since(began)
	t.Logf("%d bytes took %v; told to wait %v in %d fetches", size, took, fetcher.Throttled, fetcher.Fetches)
	if took < fetcher.Throttled {
		t.Errorf("took %v, told to wait %v", took, fetcher.Throttled)
	}
	if n := strings.Count(a.log.tail(1<<20), "the source's quota slows the mirror\""); n != 1 {
		t.Errorf("the log says %d times that the quota slows the mirror", n)
	}
	wantEqual(t, src, a, p)
}

// TestThrottle_MirrorRateIsKept mirrors from two brokers under one rate: all of it takes the time the rate gives it.
func TestThrottle_MirrorRateIsKept(t *testing.T) {
	const rate, each = 2 << 20, 2 << 20
	src := source(t)
	parts := []tp{{"throttle-rate", 0}, {"throttle-rate", 1}, {"throttle-rate", 2}}
	createTopic(t, src, kafka.TopicSpec{Name: parts[0].topic, Assignment: [][]int32{{1, 2}, {2, 1}, {1, 2}}})
	for _, p := range parts {
		writeBulk(t, src, p, each)
	}
	props := agentProps(src, t.TempDir(), "preserve", parts[0].topic)
	props["mirror.m.mirror.replication.throttled.rate"] = fmt.Sprint(rate)
	began := time.Now()
	a := startAgent(t, props)
	a.awaitCaughtUp(src, parts...)
	took, throttle := time.Since(began), a.Status().Mirrors[0].Throttle
	t.Logf("%d bytes took %v", throttle.Bytes, took)
	if throttle.Rate != rate || throttle.Bytes < int64(len(parts)*each) {
		t.Errorf("the status says %+v", throttle)
	}
	least := time.Duration(float64(throttle.Bytes)/rate*float64(time.Second)) - time.Second/2 // what passes at once
	if took < least {
		t.Errorf("%d bytes took %v, want %v at least", throttle.Bytes, took, least)
	}
}
