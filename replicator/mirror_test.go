package replicator

import "testing"

func TestAgent_MirrorsEveryPartitionByteForByte(t *testing.T) {
	src := newFakeKafka(t)
	src.createTopic(t, "orders", 3)
	for p := range int32(3) {
		src.produce(t, "orders", p, 100)
	}
	dir := t.TempDir()
	a := runAgent(t, src.properties(dir))
	for p := range int32(3) {
		a.awaitEnd(t, "orders", p, 100)
	}
	src.produce(t, "orders", 1, 50)
	a.awaitEnd(t, "orders", 1, 150)
	a.stop(t)
	for p := range int32(3) {
		checkSame(t, mirrored(t, dir, "orders", p), src.batches(t, "orders", p, 0))
	}
}

func TestAgent_GoesOnFromItsEndAfterARestart(t *testing.T) {
	src := newFakeKafka(t)
	src.createTopic(t, "orders", 1)
	src.produce(t, "orders", 0, 40)
	dir := t.TempDir()
	a := runAgent(t, src.properties(dir))
	a.awaitEnd(t, "orders", 0, 40)
	a.stop(t)
	src.produce(t, "orders", 0, 40)
	b := runAgent(t, src.properties(dir))
	b.awaitEnd(t, "orders", 0, 80)
	if p, _ := b.partition("orders", 0); p.Bytes >= int64(len(src.batches(t, "orders", 0, 0))) {
		t.Errorf("fetched %d bytes after the restart: all of it again", p.Bytes)
	}
	b.stop(t)
	checkSame(t, mirrored(t, dir, "orders", 0), src.batches(t, "orders", 0, 0))
}

func TestAgent_FindsAddedPartitionsAndTopics(t *testing.T) {
	src := newFakeKafka(t)
	src.createTopic(t, "orders", 1)
	dir := t.TempDir()
	a := runAgent(t, src.properties(dir))
	a.awaitState(t, "orders", 0, StateMirroring)
	if _, err := src.admin.UpdatePartitions(t.Context(), 4, "orders"); err != nil {
		t.Fatal(err)
	}
	src.createTopic(t, "late", 1)
	for p := range int32(4) {
		src.produce(t, "orders", p, 20)
	}
	src.produce(t, "late", 0, 20)
	for p := range int32(4) {
		a.awaitEnd(t, "orders", p, 20)
	}
	a.awaitEnd(t, "late", 0, 20)
}

func TestAgent_FollowsALeaderThatMoves(t *testing.T) {
	src := newFakeKafka(t)
	src.createTopic(t, "orders", 1)
	src.produce(t, "orders", 0, 50)
	dir := t.TempDir()
	a := runAgent(t, src.properties(dir, "mirror.metadata.refresh.interval.ms", "600000"))
	a.awaitEnd(t, "orders", 0, 50)
	for i := range 6 {
		if err := src.MoveTopicPartition("orders", 0, int32(i%2)); err != nil {
			t.Fatal(err)
		}
		src.produce(t, "orders", 0, 10)
		a.awaitEnd(t, "orders", 0, int64(60+10*i))
	}
	a.stop(t)
	checkSame(t, mirrored(t, dir, "orders", 0), src.batches(t, "orders", 0, 0))
}
