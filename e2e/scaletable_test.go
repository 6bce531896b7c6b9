package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// scaledAgent is an agent in a process of its own, and when it was started.
type scaledAgent struct {
	*agentProcess
	began    time.Time
	listener string
	metrics  string
	dir      string
}

// startScaled runs an agent, by way of another command if one is given.
func startScaled(t *testing.T, props map[string]string, by ...string) *scaledAgent {
	t.Helper()
	if _, err := buildAgent(); err != nil { // not part of the first start's time
		t.Fatal(err)
	}
	began := time.Now()
	return &scaledAgent{
		agentProcess: startProcess(t, props, by...), began: began, listener: props["listeners"],
		metrics: "http://" + props["metrics.listener"], dir: props["log.dirs"],
	}
}

// get asks the agent's HTTP listener, "" while it does not answer.
func (a *scaledAgent) get(path string) string {
	resp, err := http.Get(a.metrics + path)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return ""
	}
	return string(body)
}

// awaitMirroring waits until n partitions are MIRRORING and says when that was.
func (a *scaledAgent) awaitMirroring(n int) time.Time {
	a.t.Helper()
	want := fmt.Sprintf("mirror %s: %d partitions, %d mirroring, 0 failed", mirrorName, n, n)
	eventually(a.t, 5*time.Minute, want, func() (bool, string) {
		wait(a.t, 200*time.Millisecond) // the answer walks all partitions
		health := a.get("/healthz")
		return strings.Contains(health, want), health
	})
	return time.Now()
}

// value sums the samples of a metric.
func (a *scaledAgent) value(name string) float64 {
	sum := 0.0
	for line := range strings.Lines(a.get("/metrics")) {
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == ' ' || rest[0] == '{') {
			v, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			if err == nil {
				sum += v
			}
		}
	}
	return sum
}

// proc reads one number of a file under the process's /proc directory.
func (a *scaledAgent) proc(file, key string) int64 {
	f, err := os.Open(fmt.Sprintf("/proc/%d/%s", a.cmd.Process.Pid, file))
	if err != nil {
		return -1
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), key+":"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64) // 0 where it is no number
			return n
		}
	}
	return -1
}

// cpu is the processor time the process has used.
func (a *scaledAgent) cpu() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100
}

// entries counts what a /proc directory or file of the process holds.
func (a *scaledAgent) entries(name string) int {
	path := fmt.Sprintf("/proc/%d/%s", a.cmd.Process.Pid, name)
	if list, err := os.ReadDir(path); err == nil {
		return len(list)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return -1
	}
	return strings.Count(string(data), "\n")
}

// diskMiB is what the log directory takes of its file system, and how many files and folders that is.
func (a *scaledAgent) disk() (mib float64, files int) {
	blocks := int64(0)
	filepath.WalkDir(a.dir, func(_ string, d fs.DirEntry, err error) error { // what goes meanwhile counts nothing
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				blocks += st.Blocks
				files++
			}
		}
		return nil
	})
	return float64(blocks*512) / (1 << 20), files
}

// table prints figures as they come.
type table struct{ t *testing.T }

func newTable(t *testing.T, title string) *table {
	t.Log("== " + title)
	return &table{t: t}
}

func (r *table) row(name, format string, args ...any) {
	r.t.Logf("%-44s %s", name, fmt.Sprintf(format, args...))
}

// took notes a time from began until now, or until the time given.
func (r *table) took(name string, began time.Time, until ...time.Time) {
	end := time.Now()
	if len(until) > 0 {
		end = until[0]
	}
	r.row(name, "%.1f s", end.Sub(began).Seconds())
}

// at notes what the agent's process holds now.
func (r *table) at(a *scaledAgent, when string) {
	mib := func(key string) float64 { return float64(a.proc("status", key)) / 1024 }
	r.row(when+": memory", "%.0f MiB anonymous, %.0f MiB of files, peak %.0f MiB", mib("RssAnon"), mib("RssFile"),
		mib("VmHWM"))
	r.row(when+": Go", "%.0f MiB heap in use, %.0f goroutines, %.1f s processor", a.value("go_memstats_heap_inuse_bytes")/
		(1<<20), a.value("go_goroutines"), a.cpu().Seconds())
	disk, files := a.disk()
	r.row(when+": descriptors, maps", "%d, %d", a.entries("fd"), a.entries("maps"))
	r.row(when+": disk", "%.0f MiB in %d files and folders", disk, files)
}

// idle watches agents for a while in which nothing happens.
func (r *table) idle(d time.Duration, agents ...*scaledAgent) {
	type reading struct {
		cpu                time.Duration
		read, written, ops float64
	}
	look := func(a *scaledAgent) reading {
		return reading{
			ops: a.value("segmirror_fetcher_fetches_total"), read: float64(a.proc("io", "rchar")),
			written: float64(a.proc("io", "wchar")), cpu: a.cpu(),
		}
	}
	var before []reading
	for _, a := range agents {
		before = append(before, look(a))
	}
	wait(r.t, d)
	for i, a := range agents {
		used := a.cpu() - before[i].cpu // before the metrics are asked for, which is not idling
		read, written := float64(a.proc("io", "rchar"))-before[i].read, float64(a.proc("io", "wchar"))-before[i].written
		ops := a.value("segmirror_fetcher_fetches_total") - before[i].ops
		share := used.Seconds() / d.Seconds()
		r.row(fmt.Sprintf("%.0f s idle, agent %d", d.Seconds(), i+1),
			"%.1f%% of a core, %.1f fetches/s, %.1f kB/s read, %.1f kB/s written", share*100, ops/d.Seconds(),
			read/1000/d.Seconds(), written/1000/d.Seconds())
		if share > scaleIdleShare {
			r.t.Errorf("an idle agent takes %.1f%% of a core, the aim is %.0f%%", share*100, scaleIdleShare*100)
		}
	}
}

// within holds an agent against what it may take.
func (r *table) within(a *scaledAgent) {
	if mib := a.proc("status", "RssAnon") / 1024; mib > scaleMemoryMiB {
		r.t.Errorf("%d MiB of memory without files, the aim is %d", mib, scaleMemoryMiB)
	}
	if disk, _ := a.disk(); disk > scaleDiskMiB {
		r.t.Errorf("%.0f MiB of disk, the aim is %d", disk, scaleDiskMiB)
	}
}

// asks notes how long the answers about everything take.
func (r *table) asks(a *scaledAgent) {
	began, cpu := time.Now(), a.cpu()
	size := len(a.get("/metrics"))
	r.row("/metrics", "%.0f ms, %.1f MB, %d ms processor, peak memory then %d MiB", time.Since(began).Seconds()*1000,
		float64(size)/1e6, (a.cpu() - cpu).Milliseconds(), a.proc("status", "VmHWM")/1024)
	began = time.Now()
	a.get("/healthz")
	r.row("/healthz", "%.1f ms", time.Since(began).Seconds()*1000)
	cl, err := kgo.NewClient(kgo.SeedBrokers(a.listener))
	if err != nil {
		r.t.Fatal(err)
	}
	defer cl.Close()
	began = time.Now()
	topics, err := kadm.NewClient(cl).ListTopics(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	r.row("topics, as a client lists them", "%.0f ms, %d topics", time.Since(began).Seconds()*1000, len(topics))
}

// restarts stops and starts the agent, in order and with SIGKILL.
func (r *table) restarts(a **scaledAgent, props map[string]string, partitions int) {
	began := time.Now()
	(*a).stop()
	r.took("stopped in order", began)
	*a = startScaled(r.t, props)
	r.took("started again: all MIRRORING", (*a).began, (*a).awaitMirroring(partitions))
	r.at(*a, "after that")
	(*a).kill()
	*a = startScaled(r.t, props)
	r.took("started after kill -9: all MIRRORING", (*a).began, (*a).awaitMirroring(partitions))
}

// latency consumes from the agent what the ticker writes, and notes how old the records are on arrival.
func (r *table) latency(name string, k *ticker, a *scaledAgent, d time.Duration) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(a.listener), kgo.ConsumeTopics(k.topics...), kgo.FetchMaxWait(time.Second),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()))
	if err != nil {
		r.t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(r.t.Context(), d)
	defer cancel()
	var ages []time.Duration
	cpu := a.cpu()
	for ctx.Err() == nil {
		fetches := cl.PollFetches(ctx)
		now := time.Now().UnixNano()
		fetches.EachRecord(func(rec *kgo.Record) {
			if at, err := strconv.ParseInt(string(rec.Value), 10, 64); err == nil {
				ages = append(ages, time.Duration(now-at))
			}
		})
	}
	if len(ages) == 0 {
		r.t.Errorf("%s: nothing arrived", name)
		return
	}
	slices.Sort(ages)
	at := func(share float64) float64 { return ages[int(share*float64(len(ages)-1))].Seconds() * 1000 }
	r.row(name, "p50 %.1f ms, p99 %.1f ms, longest %.1f ms (%d records, %.1f%% of a core)", at(0.5), at(0.99), at(1),
		len(ages), (a.cpu()-cpu).Seconds()/d.Seconds()*100)
}
