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
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"segmirror/bench/kafka"
)

// lab holds the cluster that the tests share. It lives until the last test is done.
type lab struct {
	once    sync.Once
	cluster *kafka.Cluster
	err     error
}

var shared lab

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.cluster != nil {
		if err := shared.cluster.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: close the source cluster:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// quotaWindowSeconds is over how long the source holds a client to its quota. Kafka's eleven windows of one second would
// forget what a client on a busy machine has taken before it takes the rest.
const quotaWindowSeconds = 20

// source is the cluster that is mirrored: two brokers, with an authorizer. A start that failed is not tried again.
func source(t *testing.T) *kafka.Cluster {
	t.Helper()
	kafka.Require(t)
	shared.once.Do(func() {
		// Not the test's context: the cluster outlives the test that asks first. Other packages' tests may hold the lock.
		ctx, cancel := context.WithTimeout(context.Background(), 25*time.Minute)
		defer cancel()
		shared.cluster, shared.err = kafka.Start(ctx, kafka.Config{
			Brokers: 2, Authorizer: true, HeapMB: 384,
			Props: map[string]string{"quota.window.num": "2", "quota.window.size.seconds": fmt.Sprint(quotaWindowSeconds)},
		})
	})
	if shared.err != nil {
		t.Fatalf("start the source cluster: %v", shared.err)
	}
	return shared.cluster
}

// destination starts a broker that adopts mirrored directories. It lives until the test's end.
func destination(t *testing.T) *kafka.Cluster {
	t.Helper()
	c, err := kafka.Start(t.Context(), kafka.Config{Brokers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// timeToClean is how long the source's log cleaner may take.
const timeToClean = patience

// patience is how long a test waits for what must come. Only a test that fails spends it.
const patience = 3 * time.Minute

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
