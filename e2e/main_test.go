// Package e2e tests the whole against a real Kafka: what the agent mirrors from a live source, what it leaves on disk,
// and what a broker makes of that.
//
// # What
//
// One source cluster of two brokers and, for the tests that need it, one destination broker are started on first use
// and shared by all tests of this package. Where Java or Maven is missing the tests skip, unless
// SEGMIRROR_REQUIRE_KAFKA=1.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"segmirror/bench/kafka"
)

// lab holds what the tests share. Its clusters live until the last test is done.
type lab struct {
	mu       sync.Mutex
	clusters map[string]*kafka.Cluster
	errs     map[string]error
}

var shared = lab{clusters: map[string]*kafka.Cluster{}, errs: map[string]error{}}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: close clusters:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// cluster returns the cluster of that name, starting it on first use. A start that failed is not tried again.
func (l *lab) cluster(t *testing.T, name string, cfg kafka.Config) *kafka.Cluster {
	t.Helper()
	kafka.Require(t)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clusters[name] == nil && l.errs[name] == nil {
		// Not the test's context: the cluster outlives the test that asks first.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		l.clusters[name], l.errs[name] = kafka.Start(ctx, cfg)
	}
	if err := l.errs[name]; err != nil {
		t.Fatalf("start the %s cluster: %v", name, err)
	}
	return l.clusters[name]
}

func (l *lab) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, c := range l.clusters {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// source is the cluster that is mirrored: two brokers, with an authorizer.
func source(t *testing.T) *kafka.Cluster {
	t.Helper()
	return shared.cluster(t, "source", kafka.Config{Brokers: 2, Authorizer: true, HeapMB: 384})
}

// destination is the cluster that adopts mirrored directories: one broker.
func destination(t *testing.T) *kafka.Cluster {
	t.Helper()
	return shared.cluster(t, "destination", kafka.Config{Brokers: 1})
}

// timeToClean is how long the source's log cleaner may take.
const timeToClean = time.Minute

// eventually polls cond until it is true and fails the test after limit; last says what was seen then.
func eventually(t *testing.T, limit time.Duration, what string, cond func() (ok bool, last string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, last := cond()
		if ok {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after %v still waiting for %s: %s", limit, what, last)
		case <-tick.C:
		}
	}
}
