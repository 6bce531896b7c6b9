package replicator

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// TestThrottle_RateHoldsOverTenSeconds asks for what is free, gets it after a round trip, and counts what came in ten
// seconds, for batches smaller and larger than the window and for round trips longer than it.
func TestThrottle_RateHoldsOverTenSeconds(t *testing.T) {
	for _, c := range []struct {
		rate, batch int64
		trip        time.Duration
		askers      int
	}{
		{rate: 1 << 20, batch: 16 << 10, trip: time.Millisecond, askers: 1},
		{rate: 1 << 20, batch: 16 << 10, trip: time.Millisecond, askers: 8},
		{rate: 10 << 20, batch: 1 << 20, trip: 20 * time.Millisecond, askers: 1},
		{rate: 100 << 20, batch: 100 << 10, trip: 800 * time.Millisecond, askers: 2},
		{rate: 1 << 20, batch: 700 << 10, trip: 5 * time.Millisecond, askers: 1}, // larger than the window
		{rate: 1 << 20, batch: 900 << 10, trip: 5 * time.Millisecond, askers: 3},
	} {
		var throttle throttle
		throttle.set(c.rate)
		throttle.sharers.Store(int32(c.askers))
		now := time.Now()
		due, asked, windows := make([]time.Time, c.askers), make([]time.Time, c.askers), make([]time.Duration, c.askers)
		pending := make([]int64, c.askers)
		for i := range windows {
			windows[i], due[i] = throttleWindow, now
		}
		begin, settled := now, now.Add(5*time.Second)
		total, questions := int64(0), 0
		for end := settled.Add(10 * time.Second); now.Before(end); now = now.Add(time.Millisecond) {
			for i := range due {
				if due[i].After(now) {
					continue
				}
				if pending[i] > 0 {
					throttle.take(asked[i], pending[i], windows[i])
					windows[i] = max(throttleWindow, now.Sub(asked[i]))
					if now.After(settled) {
						total += pending[i]
					}
					pending[i] = 0
				}
				questions++
				free, wait := throttle.free(now, windows[i])
				if wait > 0 {
					due[i] = now.Add(wait)
					continue
				}
				pending[i] = max(c.batch, free/c.batch*c.batch)
				asked[i], due[i] = now, now.Add(c.trip)
			}
		}
		name := fmt.Sprintf("%+v", c)
		if got := float64(total) / 10 / float64(c.rate); math.Abs(got-1) > 0.1 {
			t.Errorf("%s: %.3f of the rate in ten seconds", name, got)
		}
		if most := int(now.Sub(begin)/(throttleWindow/4)) * c.askers; questions > most+int(now.Sub(begin)/c.trip) {
			t.Errorf("%s: asked %d times", name, questions)
		}
	}
}

func TestThrottle_HotPathAllocatesNothing(t *testing.T) {
	var throttle throttle
	throttle.set(1 << 30)
	now := time.Now()
	if n := testing.AllocsPerRun(100, func() {
		throttle.free(now, throttleWindow)
		throttle.take(now, 100, throttleWindow)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestThrottle_ValuesAreChecked(t *testing.T) {
	for _, c := range []struct {
		kind       int8
		key, value string
		known, ok  bool
	}{
		{resourceBroker, throttleRateKey, "1048576", true, true},
		{resourceMirror, throttleRateKey, "9223372036854775807", true, true},
		{resourceBroker, throttleRateKey, "0", true, false},
		{resourceBroker, throttleRateKey, "-1", true, false},
		{resourceBroker, throttleRateKey, "fast", true, false},
		{resourceTopic, throttleRateKey, "1", false, true},
		{resourceTopic, throttleReplicasKey, "*", true, true},
		{resourceTopic, throttleReplicasKey, "", true, true},
		{resourceTopic, throttleReplicasKey, "0:1, 12:7", true, true},
		{resourceTopic, throttleReplicasKey, "0", true, false},
		{resourceTopic, throttleReplicasKey, "0:1:2", true, false},
		{resourceTopic, throttleReplicasKey, "-1:1", true, false},
		{resourceTopic, throttleReplicasKey, "2147483648:1", true, false},
		{resourceTopic, throttleReplicasKey, "0:1,*", true, false},
		{resourceBroker, throttleReplicasKey, "*", false, true},
		{resourceTopic, "retention.ms", "1", false, true},
	} {
		known, err := checkThrottle(c.kind, c.key, c.value)
		if known != c.known || (err == nil) != c.ok {
			t.Errorf("type %d, %s=%s: known %v, %v", c.kind, c.key, c.value, known, err)
		}
	}
}

func FuzzParseThrottledReplicas(f *testing.F) {
	for _, v := range []string{"*", "", "0:1", "1:2, 3:4", "1:", ":", "*,1:1", "99999999999:1"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v string) {
		replicas, err := parseThrottledReplicas(v)
		if err != nil {
			return
		}
		var pairs []string
		for _, r := range replicas.some {
			if r.partition < 0 || r.node < 0 {
				t.Fatalf("%q: %+v", v, r)
			}
			pairs = append(pairs, fmt.Sprintf("%d:%d", r.partition, r.node))
		}
		text := strings.Join(pairs, ",")
		if replicas.all {
			text = "*"
		}
		again, err := parseThrottledReplicas(text)
		if err != nil || again.all != replicas.all || fmt.Sprint(again.some) != fmt.Sprint(replicas.some) {
			t.Fatalf("%q is %+v, and %q %+v (%v)", v, replicas, text, again, err)
		}
	})
}

// fill gives a partition n batches of size bytes. Call within update.
func (p *testPartition) fill(n, size int) {
	for range n {
		p.append(sizedBatch(p.end, 16, (size-100)/16))
	}
}

func configValue(kind int8, name, key, value string) MetadataRecord {
	return MetadataRecord{Config: &ConfigRecord{ResourceType: kind, ResourceName: name, Name: key, Value: &value}}
}

// configure stores configurations as an RPC does.
func (a *testAgent) configure(t *testing.T, records ...MetadataRecord) {
	t.Helper()
	if err := a.metadata.append(records...); err != nil {
		t.Fatal(err)
	}
}

// TestThrottle_ListedPartitionsKeepToTheRate mirrors a listed and an unlisted partition of as many bytes over one
// connection: the listed one waits for its rate, is asked for no more than that has, and follows each change of it.
func TestThrottle_ListedPartitionsKeepToTheRate(t *testing.T) {
	const crawl, rate, batches, size = 18, 1 << 20, 24, 64 << 10 // at a crawl a batch costs an hour
	s := newTestSource(t)
	s.limited = true
	slow, fast := s.addTopic("slow", 2), s.addTopic("fast", 1)
	a := startAgent(t, s, t.TempDir(), stayFailed())
	setRate := func(rate int) {
		a.configure(t, configValue(resourceBroker, "1", throttleRateKey, fmt.Sprint(rate)))
	}
	a.configure(t, configValue(resourceTopic, "slow", throttleReplicasKey, "0:1,1:2"))
	setRate(crawl)
	await(t, patience, "the listed partition to be asked for less", func() bool {
		asks := s.fetches(slow.partitions[0])
		return len(asks) > 0 && asks[len(asks)-1].MaxBytes < size
	})
	s.update(func() {
		slow.partitions[0].fill(batches, size)
		slow.partitions[1].fill(batches, size) // listed for another node
		fast.partitions[0].fill(batches, size)
	})
	a.awaitEnd(t, "fast", 0, batches*16)
	a.awaitEnd(t, "slow", 1, batches*16)
	if p := a.partition("slow", 0); p.EndOffset > 16 {
		t.Errorf("the listed partition is at offset %d, its rate has one batch of 16 records", p.EndOffset)
	}
	before, began := len(s.fetches(slow.partitions[0])), time.Now()
	setRate(rate)
	a.awaitEnd(t, "slow", 0, batches*16)
	if took, least := time.Since(began), time.Second*(batches-2)*size/rate-throttleWindow; took < least {
		t.Errorf("the listed partition took %v, want %v at least", took, least)
	}
	if n := len(s.fetches(slow.partitions[0])) - before; n > batches+1 {
		t.Errorf("asked %d times for %d batches", n, batches)
	}
	if got := a.Status().Throttle; got.Rate != rate || got.Bytes < batches*(size-2000) {
		t.Errorf("the status says %+v", got)
	}
	setRate(crawl)
	s.update(func() { slow.partitions[0].fill(10*batches, size) })
	a.configure(t, MetadataRecord{Config: &ConfigRecord{ // followed while it waits
		ResourceType: resourceBroker, ResourceName: "1", Name: throttleRateKey,
	}})
	a.awaitEnd(t, "slow", 0, 11*batches*16)
	a.mustEqual(t, s, slow, 0)
}

// TestThrottle_ChangeIsFollowedWhileADebtIsPaid has a batch that costs an hour of the rate, and then another rate.
func TestThrottle_ChangeIsFollowedWhileADebtIsPaid(t *testing.T) {
	s := newTestSource(t)
	s.limited = true
	topic := s.addTopic("t", 1)
	s.update(func() { topic.partitions[0].fill(1, 64<<10) })
	a := startAgent(t, s, t.TempDir(), stayFailed("mirror.m.mirror.replication.throttled.rate", "18"))
	a.awaitEnd(t, "t", 0, 16)
	s.update(func() { topic.partitions[0].fill(1, 64<<10) })
	a.configure(t, configValue(resourceMirror, "m", throttleRateKey, "1000000"))
	a.awaitEnd(t, "t", 0, 32)
	a.mustEqual(t, s, topic, 0)
}

// TestThrottle_MirrorRateHoldsForAllItsPartitions has batches larger than the window of the mirror's rate: they come
// one by one, more slowly.
func TestThrottle_MirrorRateHoldsForAllItsPartitions(t *testing.T) {
	const rate, size = 400 << 10, 200 << 10
	s := newTestSource(t)
	s.limited = true
	topic := s.addTopic("t", 3)
	s.update(func() {
		for _, p := range topic.partitions {
			p.fill(2, size)
		}
	})
	began := time.Now()
	a := startAgent(t, s, t.TempDir(), stayFailed("mirror.m.mirror.replication.throttled.rate", fmt.Sprint(rate)))
	for i := range topic.partitions {
		a.awaitEnd(t, "t", i, 32)
	}
	if took, least := time.Since(began), time.Second*5*size/rate-throttleWindow; took < least {
		t.Errorf("took %v, want %v at least", took, least)
	}
	if got := a.Status().Mirrors[0].Throttle; got.Rate != rate || got.Bytes < 6*(size-2000) {
		t.Errorf("the status says %+v", got)
	}
	a.mustEqual(t, s, topic, 0)
}
