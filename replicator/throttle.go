package replicator

import (
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"segmirror/segment"
)

// Keys of throttles, in Kafka's way: a rate of a broker or a mirror, and the replicas a broker's rate is for.
const (
	throttleRateKey     = "mirror.replication.throttled.rate"
	throttleReplicasKey = "mirror.replication.throttled.replicas"
)

// throttleWindow is how much of a rate may be taken at once after a rest: small beside the time over which anybody
// measures a rate, large beside a round trip. Partitions that were left out are asked for again once half of it is
// free, so that a throttled fetcher asks a few times a second and not at every byte.
const throttleWindow = 400 * time.Millisecond

// throttleLook is how long a fetcher that waits for a throttle may overlook that its rate was changed.
const throttleLook = time.Second

// throttle is a rate that bytes may be taken at, as the time when all that was taken is paid for. What comes is
// counted after it was appended and may be more than was free: the next has to wait longer then. The zero value has
// no limit. Any goroutine; no allocation, no lock.
//
// golang.org/x/time/rate is not used: it refuses what is larger than its burst, where a batch has to pass whole, and
// takes a mutex for each question.
type throttle struct {
	rate    atomic.Int64 // bytes/s, 0 = no limit
	paid    atomic.Int64 // ns of the clock
	taken   atomic.Int64 // bytes, while there was a limit
	sharers atomic.Int32 // fetchers with partitions under it
}

// set changes the rate; what was taken under the old one is forgotten.
func (t *throttle) set(rate int64) {
	if t.rate.Swap(rate) != rate {
		t.paid.Store(time.Now().UnixNano())
	}
}

// free returns how many bytes one of the sharers may ask for now; none with how long to wait. window is how long
// the asker's newest round trip took: what is free grows for longer than throttleWindow if that is longer.
func (t *throttle) free(now time.Time, window time.Duration) (bytes int64, wait time.Duration) {
	rate := t.rate.Load()
	if rate == 0 {
		return math.MaxInt64, 0
	}
	credit := min(time.Duration(now.UnixNano()-t.paid.Load()), max(window, throttleWindow))
	if credit < throttleWindow/2 {
		return 0, min(throttleWindow/2-credit, throttleLook)
	}
	return max(1, int64(float64(rate)*credit.Seconds())/int64(max(1, t.sharers.Load()))), 0
}

// take counts bytes that were appended, of what was asked for at asked.
func (t *throttle) take(asked time.Time, bytes int64, window time.Duration) {
	rate := t.rate.Load()
	if rate == 0 {
		return
	}
	t.taken.Add(bytes)
	cost := int64(float64(bytes) / float64(rate) * float64(time.Second))
	for {
		paid := t.paid.Load()
		if t.paid.CompareAndSwap(paid, max(paid, asked.Add(-max(window, throttleWindow)).UnixNano())+cost) {
			return
		}
	}
}

func (t *throttle) status() ThrottleStatus {
	return ThrottleStatus{Rate: t.rate.Load(), Bytes: t.taken.Load()}
}

// throttledReplicas is a value of mirror.replication.throttled.replicas: all replicas, or some of them.
type throttledReplicas struct {
	all  bool
	some []throttledReplica
}

// throttledReplica is a partition on a node.
type throttledReplica struct{ partition, node int32 }

// parseThrottledReplicas reads `*`, or partition:node pairs with commas between; "" lists none.
//
// Kafka: ThrottledReplicaListValidator.
func parseThrottledReplicas(v string) (throttledReplicas, error) {
	if strings.TrimSpace(v) == "*" {
		return throttledReplicas{all: true}, nil
	}
	var out throttledReplicas
	for _, pair := range splitList(v) {
		partition, node, ok := strings.Cut(pair, ":")
		p, err := strconv.ParseUint(partition, 10, 31)
		n, err2 := strconv.ParseUint(node, 10, 31)
		if !ok || err != nil || err2 != nil {
			return throttledReplicas{}, fmt.Errorf("%q is neither * nor partition:node", pair)
		}
		out.some = append(out.some, throttledReplica{partition: int32(p), node: int32(n)})
	}
	return out, nil
}

// setThrottleRate reads a rate in bytes per second.
func setThrottleRate(dst *int64, v string) error {
	if err := setInt64(dst, v, 1); err != nil {
		return fmt.Errorf("%w: a rate is bytes per second, delete the key for none", err)
	}
	return nil
}

// checkThrottle checks a throttle's value for a resource; known is false for a key that is none there.
func checkThrottle(kind int8, key, value string) (known bool, err error) {
	switch {
	case key == throttleRateKey && (kind == resourceBroker || kind == resourceMirror):
		rate := int64(0)
		return true, setThrottleRate(&rate, value)
	case key == throttleReplicasKey && kind == resourceTopic:
		_, err := parseThrottledReplicas(value)
		return true, err
	}
	return false, nil
}

// throttles are the limits of one agent: its node's, which partitions that is for, and each mirror's. What the
// configuration file says holds until the metadata log says otherwise; a change there is followed at once.
type throttles struct {
	nodeID int32
	given  int64 // the node's rate in the configuration file, 0 = none
	node   throttle
	listed atomic.Pointer[throttleList] // replaced whole, so that who read it sees a change by its address
	logger *slog.Logger

	mu      sync.Mutex // one change at a time
	mirrors map[string]*mirrorThrottle
}

// mirrorThrottle is the limit of all partitions of a mirror.
type mirrorThrottle struct {
	throttle

	given int64
}

// throttleList holds the partitions the node's rate is for, by topic. It is not changed.
type throttleList struct{ topics map[string]throttledReplicas }

func newThrottles(cfg *Config, logger *slog.Logger) *throttles {
	t := &throttles{nodeID: cfg.NodeID, given: cfg.ThrottledRate, logger: logger, mirrors: map[string]*mirrorThrottle{}}
	t.node.set(cfg.ThrottledRate)
	t.listed.Store(&throttleList{})
	return t
}

// follow takes up what the metadata log says of throttles, and from then on what changes there.
func (t *throttles) follow(log *metadataLog) {
	changed := func(r resource) {
		if r.kind != resourceBroker {
			t.takeUp(r, func() map[string]string { return log.config(r) })
			return
		}
		node := resource{resourceBroker, itoa(t.nodeID)}
		t.takeUp(node, func() map[string]string { // over what is set for all nodes
			config := log.config(resource{kind: resourceBroker})
			maps.Copy(config, log.config(node))
			return config
		})
	}
	log.onChange(changed)
	changed(resource{resourceBroker, itoa(t.nodeID)})
	for _, topic := range log.names(resourceTopic) {
		changed(resource{resourceTopic, topic})
	}
	for _, mirror := range log.names(resourceMirror) {
		changed(resource{resourceMirror, mirror})
	}
}

// mirror returns a mirror's throttle. given is the rate of its configuration file, 0 = none.
func (t *throttles) mirror(name string, given int64, config map[string]string) *throttle {
	t.mu.Lock()
	m := t.mirrors[name]
	if m == nil {
		m = &mirrorThrottle{}
		t.mirrors[name] = m
	}
	m.given = given
	t.mu.Unlock()
	t.takeUp(resource{resourceMirror, name}, func() map[string]string { return config })
	return &m.throttle
}

// takeUp follows the configuration of a resource; a value that makes no sense changes nothing.
func (t *throttles) takeUp(r resource, config func() map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var err error
	switch node := r.kind == resourceBroker && r.name == itoa(t.nodeID); {
	case node:
		err = t.node.configure(config(), t.given)
	case r.kind == resourceTopic:
		err = t.list(r.name, config()[throttleReplicasKey])
	case r.kind == resourceMirror && t.mirrors[r.name] != nil:
		m := t.mirrors[r.name]
		err = m.configure(config(), m.given)
	}
	if err != nil {
		t.logger.Warn("a throttle is left as it was", slog.String("resource", r.name), slog.Any("err", err))
	}
}

// configure sets the rate that config says, given where it says none.
func (t *throttle) configure(config map[string]string, given int64) error {
	rate := given
	if v, ok := config[throttleRateKey]; ok {
		if err := setThrottleRate(&rate, v); err != nil {
			return fmt.Errorf("%s: %w", throttleRateKey, err)
		}
	}
	t.set(rate)
	return nil
}

// list takes up a topic's list. mu is held.
func (t *throttles) list(topic, value string) error {
	replicas, err := parseThrottledReplicas(value)
	if err != nil {
		return fmt.Errorf("%s: %w", throttleReplicasKey, err)
	}
	topics := maps.Clone(t.listed.Load().topics)
	if topics == nil {
		topics = map[string]throttledReplicas{}
	}
	delete(topics, topic)
	if replicas.all || len(replicas.some) > 0 {
		topics[topic] = replicas
	}
	t.listed.Store(&throttleList{topics: topics})
	return nil
}

// holds reports whether the list names a partition on a node.
func (l *throttleList) holds(tp segment.TopicPartition, node int32) bool {
	replicas := l.topics[tp.Topic]
	return replicas.all || slices.Contains(replicas.some, throttledReplica{partition: tp.Partition, node: node})
}
