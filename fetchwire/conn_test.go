package fetchwire

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// startKfake runs franz-go's fake cluster with records in topic "t", one batch for each value.
func startKfake(t *testing.T, values ...string) string {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ProducerLinger(0),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, v := range values {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: []byte(v)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	return cluster.ListenAddrs()[0]
}

func dialTest(t *testing.T, addr string) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), DialConfig{Addr: addr, ClientID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestConn_FetchesFromKfake(t *testing.T) {
	addr := startKfake(t, "one", "two", "three")
	c := dialTest(t, addr)
	ctx := t.Context()

	md, err := c.Metadata(ctx, &MetadataRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var id [16]byte
	for _, topic := range md.Topics {
		if deref(topic.Name) == "t" {
			id = topic.TopicID
		}
	}
	if id == ([16]byte{}) || len(md.Brokers) != 1 || md.Brokers[0].Port == 0 {
		t.Fatalf("metadata: %+v", md)
	}
	lo, err := c.ListOffsets(ctx, &ListOffsetsRequest{
		ReplicaID: ConsumerReplicaID,
		Topics: []ListOffsetsTopic{{Name: "t", Partitions: []ListOffsetsPartition{{
			CurrentLeaderEpoch: -1, Timestamp: TimestampLatest,
		}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := lo.Topics[0].Partitions[0]; got.ErrorCode != 0 || got.Offset != 3 {
		t.Fatalf("latest offset: %+v", got)
	}

	version, err := c.Version(KeyFetch)
	if err != nil {
		t.Fatal(err)
	}
	session := NewFetchSession(version)
	records := fetchOnce(t, c, session, SessionPartition{
		Topic: "t", TopicID: id, Slot: 7,
		FetchPartition: FetchPartition{CurrentLeaderEpoch: -1, LastFetchedEpoch: -1, MaxBytes: 1 << 20},
	})
	for _, v := range []string{"one", "two", "three"} {
		if !bytes.Contains(records, []byte(v)) {
			t.Errorf("the records lack %q", v)
		}
	}
}

func fetchOnce(t *testing.T, c *Conn, session *FetchSession, want SessionPartition) []byte {
	t.Helper()
	req := session.Next(FetchParams{MaxWaitMs: 100, MinBytes: 1, MaxBytes: 1 << 20}, []SessionPartition{want})
	s, err := c.Fetch(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := session.HandleResponse(s.Head().SessionID, s.Head().ErrorCode); err != nil {
		t.Fatal(err)
	}
	var records []byte
	for s.Next() {
		p := s.Partition()
		if p.Topic != want.Topic || p.Index != want.Partition || p.Slot != want.Slot || p.ErrorCode != 0 {
			t.Fatalf("partition head: %+v", p)
		}
		b, err := io.ReadAll(s)
		if err != nil || len(b) != p.RecordsSize {
			t.Fatalf("records: %d bytes of %d, %v", len(b), p.RecordsSize, err)
		}
		records = append(records, b...)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return records
}
