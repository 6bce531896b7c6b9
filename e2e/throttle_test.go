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
// through at once what the quota gives in ten seconds; the rest waits for some, with few questions.
func TestThrottle_SourceQuotaSlowsTheFetchAndIsShown(t *testing.T) {
	const quota, size = 200_000, 2_300_000
	src := source(t)
	p := tp{"throttle-quota", 0}
	createTopic(t, src, kafka.TopicSpec{Name: p.topic, Assignment: [][]int32{{1, 2}}})
	writeBulk(t, src, p, size)
	props := agentProps(src, t.TempDir(), "preserve", p.topic)
	props["node.id"], props["mirror.m.mirror.fetch.response.max.bytes"] = "78", "400000"
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
	a.awaitCaughtUp(src, p)
	took, fetcher := time.Since(began), fetcherOf(a)
	t.Logf("%d bytes took %v; told to wait %v in %d fetches", size, took, fetcher.Throttled, fetcher.Fetches)
	if fetcher.Throttled < 200*time.Millisecond || took < fetcher.Throttled {
		t.Errorf("took %v, told to wait %v", took, fetcher.Throttled)
	}
	if most := 50 + int64(took/(100*time.Millisecond)); fetcher.Fetches > most {
		t.Errorf("%d fetches in %v", fetcher.Fetches, took)
	}
	if n := strings.Count(a.log.tail(1<<20), "the source's quota slows the mirror\""); n != 1 {
		t.Errorf("the log says %d times that the quota slows the mirror", n)
	}
	set(kadm.AlterClientQuotaOp{Key: "consumer_byte_rate", Remove: true})
	wantEqual(t, src, a, p)
}

// TestThrottle_MirrorRateIsKept mirrors under a rate of its own, and measures it after the first half.
func TestThrottle_MirrorRateIsKept(t *testing.T) {
	const rate = 2 << 20
	src := source(t)
	parts := []tp{{"throttle-rate", 0}, {"throttle-rate", 1}, {"throttle-rate", 2}}
	createTopic(t, src, kafka.TopicSpec{Name: parts[0].topic, Assignment: [][]int32{{1, 2}, {2, 1}, {1, 2}}})
	for _, p := range parts {
		writeBulk(t, src, p, 2<<20)
	}
	props := agentProps(src, t.TempDir(), "preserve", parts[0].topic)
	props["mirror.m.mirror.replication.throttled.rate"] = fmt.Sprint(rate)
	a := startAgent(t, props)
	appended := func() int64 { return a.Status().Mirrors[0].Throttle.Bytes }
	first, began := int64(0), time.Time{}
	eventually(t, patience, "bytes for two seconds", func() (bool, string) {
		n := appended()
		if began.IsZero() && n > rate/2 {
			first, began = n, time.Now()
		}
		return n-first > 3*rate/2 && first > 0, fmt.Sprintf("%d bytes", n)
	})
	measured := float64(appended()-first) / time.Since(began).Seconds()
	t.Logf("%.3f of the rate", measured/rate)
	if measured > 1.1*rate {
		t.Errorf("%.0f bytes a second, the rate is %d", measured, rate)
	}
}
