package replicator

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"segmirror/fetchwire"
)

// limitedServer is an agent that serves topic "t" with limits of a test's making.
func limitedServer(t *testing.T, limits clientLimits, batches ...[]byte) (addr string, s *server) {
	t.Helper()
	source := newTestSource(t)
	topic := source.addTopic("t", 1)
	source.update(func() { topic.partitions[0].append(batches...) })
	dir := t.TempDir()
	filled := startAgent(t, source, dir, nil)
	filled.awaitEnd(t, "t", 0, topic.partitions[0].end)
	filled.stop()
	cfg := filled.cfg
	cfg.Server.Listeners = []string{"127.0.0.1:0"}
	a, err := New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.clients.limits = limits
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return a.ListenerAddrs()[0], a.clients
}

// generous are limits that no test here meets but by the one it narrows.
func generous(narrow func(*clientLimits)) clientLimits {
	l := clientLimits{clients: 100, bytes: 1 << 20, idle: time.Hour, write: time.Hour}
	narrow(&l)
	return l
}

func (s *server) connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.clients)
}

func dialRaw(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// mustBeClosed waits until the server closes a connection that is sent nothing more.
func mustBeClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection stands: %d bytes, %v", n, err)
	}
}

func TestServer_ClosesConnectionsBeyondItsLimit(t *testing.T) {
	addr, s := limitedServer(t, generous(func(l *clientLimits) { l.clients = 2 }), dataBatch(0, 1))
	first, second := dialRaw(t, addr), dialRaw(t, addr)
	await(t, patience, "two are taken", func() bool { return s.connected() == 2 })
	mustBeClosed(t, dialRaw(t, addr))
	_ = first.Close()
	await(t, patience, "one has left", func() bool { return s.connected() == 1 })
	conn, err := fetchwire.Dial(t.Context(), fetchwire.DialConfig{Addr: addr, ClientID: "c"})
	if err != nil {
		t.Fatalf("there is room again: %v", err)
	}
	defer conn.Close()
	_ = second.Close()
}

func TestServer_ClosesAtOnceForARequestBeyondItsLimit(t *testing.T) {
	addr, _ := limitedServer(t, generous(func(l *clientLimits) { l.bytes = 1000 }), dataBatch(0, 1))
	conn := dialRaw(t, addr)
	if _, err := conn.Write(binary.BigEndian.AppendUint32(nil, 1001)); err != nil {
		t.Fatal(err)
	}
	mustBeClosed(t, conn)
}

func TestServer_LetsGoOfAHalfRequest(t *testing.T) {
	addr, s := limitedServer(t, generous(func(l *clientLimits) { l.idle = 100 * time.Millisecond }), dataBatch(0, 1))
	conn := dialRaw(t, addr)
	if _, err := conn.Write([]byte{0, 0, 1, 0, 0, 1, 0}); err != nil {
		t.Fatal(err)
	}
	mustBeClosed(t, conn)
	await(t, patience, "nobody is there", func() bool { return s.connected() == 0 })
}

func TestServer_LetsGoOfAClientThatTakesNothing(t *testing.T) {
	var batches [][]byte
	for i := range int64(24) {
		batches = append(batches, sizedBatch(i, 1, 1<<20))
	}
	addr, s := limitedServer(t, generous(func(l *clientLimits) { l.write = 200 * time.Millisecond }), batches...)
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MinBytes, req.MaxBytes = 4, 1, 50<<20
	topic, part := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	part.PartitionMaxBytes = 50 << 20
	topic.Topic, topic.Partitions = "t", []kmsg.FetchRequestTopicPartition{part}
	req.Topics = []kmsg.FetchRequestTopic{topic}
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("slow")).AppendRequest(nil, req, 1)
	conn := dialRaw(t, addr)
	if _, err := conn.Write(frame); err != nil {
		t.Fatal(err)
	}
	await(t, patience, "it is taken", func() bool { return s.connected() == 1 })
	await(t, patience, "it is let go", func() bool { return s.connected() == 0 })
	n, _ := io.Copy(io.Discard, conn) // an end or a reset, as the kernel likes
	if n == 0 || n >= 24<<20 {
		t.Errorf("%d bytes had been sent", n)
	}
}

// TestServedFetch_AThousandPartitionsInOneSession asks for a thousand, then hears of the one that grew.
func TestServedFetch_AThousandPartitionsInOneSession(t *testing.T) {
	t.Parallel()
	const partitions = 1000
	s := newTestSource(t)
	topic := s.addTopic("t", partitions)
	s.update(func() {
		for _, p := range topic.partitions {
			p.append(dataBatch(0, 2))
		}
	})
	a := startAgent(t, s, t.TempDir(), map[string]string{"listeners": "PLAINTEXT://127.0.0.1:0"})
	for i := range partitions {
		await(t, 2*patience, fmt.Sprintf("t-%d is served", i), func() bool { return a.partition("t", i).HighWatermark == 2 })
	}
	r := readerOf(t, &runningAgent{Agent: a.Agent}, "reader")
	session := fetchwire.NewFetchSession(18)
	var wanted []fetchwire.SessionPartition
	for i := range int32(partitions) {
		wanted = append(wanted, r.want("t", i, 0))
	}
	next := func(maxWait int32) map[int32]answered {
		head, got := r.ask(t, session.Next(
			fetchwire.FetchParams{MaxWaitMs: maxWait, MinBytes: 1, MaxBytes: 50 << 20}, wanted))
		if err := session.HandleResponse(head.SessionID, head.ErrorCode); err != nil {
			t.Fatal(err)
		}
		return got
	}
	have := map[int32]bool{}
	for range 10 { // an answer holds so many files and no more
		for index, got := range next(0) {
			if got.next == 2 {
				have[index], wanted[index].FetchOffset = true, 2
			}
		}
		if len(have) == partitions {
			break
		}
	}
	if len(have) != partitions {
		t.Fatalf("%d of %d partitions sent their records", len(have), partitions)
	}
	if got := next(0); len(got) > 0 {
		t.Errorf("nothing changed: %d partitions", len(got))
	}
	s.update(func() { topic.partitions[777].append(dataBatch(2, 3)) })
	if got := next(30_000); len(got) != 1 || got[777].next != 5 {
		t.Errorf("one grew: %d partitions, %+v", len(got), got[777])
	}
}
