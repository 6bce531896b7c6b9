package replicator

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// collector turns a Status into metrics at each scrape, so that counting costs the data path nothing but atomics.
type collector struct{ agent *Agent }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("segmirror_"+name, help, labels, nil)
}

var partitionLabels = []string{"mirror", "topic", "partition"}

// metricSet is every metric but the per-partition ones.
type metricSet struct {
	part                           partitionMetrics
	busy, throttled, fetches, held *prometheus.Desc
	errors, partitions, refreshed  *prometheus.Desc
	free, full                     *prometheus.Desc
	rate, limited, waiting         *prometheus.Desc
}

// partitionMetrics are those of a partition. Gauges that are not known yet are NaN.
type partitionMetrics struct {
	sourceOffset, endOffset, logStart, lagRecords, lagSeconds *prometheus.Desc
	bytes, batches, state, wanted, attempts                   *prometheus.Desc
	gaps, truncated, lost, lostRanges                         *prometheus.Desc
}

func newPartitionMetrics() partitionMetrics {
	d := func(name, help string) *prometheus.Desc { return describe("partition_"+name, help, partitionLabels...) }
	return partitionMetrics{
		sourceOffset: d("source_offset", "High watermark of the source's leader; NaN until its first answer."),
		endOffset:    d("end_offset", "Log end offset of the copy."),
		logStart:     d("log_start_offset", "Log start offset of the copy."),
		lagRecords:   d("lag_records", "Offsets the copy is behind; NaN until the first answer."),
		lagSeconds: d("lag_seconds",
			"Age of the newest mirrored batch while records are missing, 0 when none is; NaN until known."),
		bytes:   d("bytes_total", "Bytes of batches appended."),
		batches: d("batches_total", "Batches appended."),
		state: d("state",
			"State: 0 PREPARING, 1 MIRRORING, 2 PAUSING, 3 PAUSED, 4 STOPPING, 5 STOPPED, 6 FAILED, 16 unknown."),
		wanted:     d("wanted", "What is wanted of its topic: 1 mirroring, 2 paused, 3 stopped, 0 nothing."),
		attempts:   d("failed_attempts", "Failures in a row."),
		gaps:       d("gaps_total", "Places where offsets were missing at a source that does not compact."),
		truncated:  d("truncated_records_total", "Records cut because the source elected a leader without them."),
		lost:       d("lost_records_total", "Offsets deleted at the source before they were fetched, ever."),
		lostRanges: d("lost_ranges", "Ranges of offsets lost that way, ever."),
	}
}

func newMetricSet() *metricSet {
	fetcher := func(name, help string) *prometheus.Desc {
		return describe("fetcher_"+name, help, "mirror", "broker", "fetcher")
	}
	return &metricSet{
		part:       newPartitionMetrics(),
		busy:       fetcher("busy_seconds_total", "Time spent reading and appending answers."),
		throttled:  fetcher("throttled_seconds_total", "Time waited because the source said so."),
		fetches:    fetcher("fetches_total", "Fetch answers."),
		held:       fetcher("partitions", "Partitions held."),
		errors:     describe("errors_total", "Failures by kind.", "mirror", "kind"),
		partitions: describe("mirror_partitions", "Partitions by state.", "mirror", "state"),
		refreshed: describe("mirror_metadata_timestamp_seconds",
			"When the source last answered about its topics.", "mirror"),
		waiting: fetcher("throttled", "1 while the source's quota has the fetcher wait."),
		rate: describe("throttle_rate_bytes",
			"Bytes per second that may be appended: all of a mirror, or what topics list (no mirror); +Inf without a limit.",
			"mirror"),
		limited: describe("throttle_bytes_total", "Bytes appended under such a limit.", "mirror"),
		free:    describe("log_dir_free_bytes", "Free bytes of a log directory's file system.", "log_dir"),
		full:    describe("log_dir_full", "1 while appends pause for want of room.", "log_dir"),
	}
}

// Describe implements prometheus.Collector: an unchecked collector, whose labels come and go with the partitions.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	set := newMetricSet()
	status := c.agent.Status()
	set.throttle(out, &status.Throttle, "")
	for i := range status.Mirrors {
		set.mirror(out, &status.Mirrors[i])
	}
	for _, d := range status.LogDirs {
		gauge(out, set.free, known(float64(d.FreeBytes)), d.Path)
		full := 0.0
		if d.Full {
			full = 1
		}
		gauge(out, set.full, full, d.Path)
	}
}

// throttle tells a limit; mirror is empty for that of the node.
func (s *metricSet) throttle(out chan<- prometheus.Metric, t *ThrottleStatus, mirror string) {
	rate := math.Inf(1)
	if t.Rate > 0 {
		rate = float64(t.Rate)
	}
	gauge(out, s.rate, rate, mirror)
	counter(out, s.limited, float64(t.Bytes), mirror)
}

func (s *metricSet) mirror(out chan<- prometheus.Metric, m *MirrorStatus) {
	states := map[State]int{
		StatePreparing: 0, StateMirroring: 0, StatePausing: 0, StatePaused: 0, StateStopping: 0, StateStopped: 0,
		StateFailed: 0,
	}
	for i := range m.Partitions {
		states[m.Partitions[i].State]++
		s.part.collect(out, m.Name, &m.Partitions[i])
	}
	for state, n := range states {
		gauge(out, s.partitions, float64(n), m.Name, state.String())
	}
	s.throttle(out, &m.Throttle, m.Name)
	for _, f := range m.Fetchers {
		labels := []string{m.Name, itoa(f.Broker), itoa(int32(f.Number))}
		counter(out, s.busy, f.Busy.Seconds(), labels...)
		counter(out, s.throttled, f.Throttled.Seconds(), labels...)
		waiting := 0.0
		if !f.ThrottledUntil.IsZero() {
			waiting = 1
		}
		gauge(out, s.waiting, waiting, labels...)
		counter(out, s.fetches, float64(f.Fetches), labels...)
		gauge(out, s.held, float64(f.Partitions), labels...)
	}
	for cause, n := range m.Errors {
		counter(out, s.errors, float64(n), m.Name, cause.String())
	}
	if !m.Refreshed.IsZero() {
		gauge(out, s.refreshed, float64(m.Refreshed.UnixMilli())/1000, m.Name)
	}
}

func (s *partitionMetrics) collect(out chan<- prometheus.Metric, mirror string, p *PartitionStatus) {
	labels := prometheus.MakeLabelPairs(s.endOffset, []string{mirror, p.Topic, itoa(p.Partition)})
	out <- sample{s.sourceOffset, labels, known(float64(p.SourceOffset)), dto.MetricType_GAUGE}
	out <- sample{s.endOffset, labels, known(float64(p.EndOffset)), dto.MetricType_GAUGE}
	out <- sample{s.logStart, labels, known(float64(p.LogStart)), dto.MetricType_GAUGE}
	out <- sample{s.lagRecords, labels, known(float64(p.LagRecords)), dto.MetricType_GAUGE}
	out <- sample{s.lagSeconds, labels, known(p.LagSeconds), dto.MetricType_GAUGE}
	out <- sample{s.bytes, labels, float64(p.Bytes), dto.MetricType_COUNTER}
	out <- sample{s.batches, labels, float64(p.Batches), dto.MetricType_COUNTER}
	out <- sample{s.state, labels, float64(p.State), dto.MetricType_GAUGE}
	out <- sample{s.wanted, labels, float64(p.Wanted), dto.MetricType_GAUGE}
	out <- sample{s.gaps, labels, float64(p.Gaps), dto.MetricType_COUNTER}
	out <- sample{s.truncated, labels, float64(p.Truncated), dto.MetricType_COUNTER}
	out <- sample{s.lost, labels, float64(p.LostRecords), dto.MetricType_COUNTER}
	out <- sample{s.lostRanges, labels, float64(len(p.Lost)), dto.MetricType_GAUGE}
	out <- sample{s.attempts, labels, float64(p.Attempts), dto.MetricType_GAUGE}
}

// sample is a metric of a partition. All of a partition's share their labels, which are most of what a scrape of
// thousands of partitions allocates.
type sample struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair // read only
	value  float64
	kind   dto.MetricType // gauge or counter
}

// Desc implements prometheus.Metric.
func (s sample) Desc() *prometheus.Desc { return s.desc }

// Write implements prometheus.Metric.
func (s sample) Write(out *dto.Metric) error {
	out.Label = s.labels
	if s.kind == dto.MetricType_COUNTER {
		out.Counter = &dto.Counter{Value: &s.value}
	} else {
		out.Gauge = &dto.Gauge{Value: &s.value}
	}
	return nil
}

// known maps -1, not known, to NaN.
func known(v float64) float64 {
	if v < 0 {
		return math.NaN()
	}
	return v
}

func gauge(out chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func counter(out chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}
