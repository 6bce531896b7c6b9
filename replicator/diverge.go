package replicator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// suspects queues a partition whose offset the source refused; investigate asks why once the answer is read.
func (f *fetcher) suspects(p *partition) { f.suspected = append(f.suspected, p) }

// investigate looks at each suspected partition's range at the source.
func (f *fetcher) investigate(ctx context.Context) {
	for len(f.suspected) > 0 && f.conn != nil {
		p := f.suspected[0]
		f.suspected = f.suspected[1:]
		why, stale, err := f.outOfRange(ctx, p)
		if err != nil {
			f.suspected = nil
			f.lost(ctx, err)
			return
		}
		if why != nil || stale {
			f.release(release{p: p, why: why, stale: stale})
		}
	}
	f.suspected = f.suspected[:0]
	f.letGo(nil)
}

// outOfRange decides what OFFSET_OUT_OF_RANGE at our end means. Nothing of ours is cut here unless retention at the
// source passed our end and the gap policy says to go on.
func (f *fetcher) outOfRange(ctx context.Context, p *partition) (why *failure, stale bool, err error) {
	one := []*partition{p}
	earliest, err := f.listOffsets(ctx, one, fetchwire.TimestampEarliest)
	if err != nil {
		return nil, false, err
	}
	latest, err := f.listOffsets(ctx, one, fetchwire.TimestampLatest)
	if err != nil {
		return nil, false, err
	}
	first, last := earliest[p.tp], latest[p.tp]
	for _, r := range []fetchwire.ListOffsetsResult{first, last} {
		if r.ErrorCode != fetchwire.CodeNone {
			why, stale = f.codeFailure(r.ErrorCode)
			return why, stale, nil
		}
	}
	log := p.feed.log
	start, end := log.LogStartOffset(), log.LogEndOffset()
	switch {
	case end < first.Offset:
		return f.overtaken(p, first.Offset), false, nil
	case end > last.Offset:
		return failf(CauseSourceShorter, "the source holds [%d, %d), the mirror [%d, %d): nothing was cut",
			first.Offset, last.Offset, start, end), false, nil
	}
	if epoch, ok := log.LatestSourceEpoch(); ok {
		answer, err := f.epochEnd(ctx, p, epoch)
		if err != nil {
			return nil, false, err
		}
		if answer.ErrorCode == fetchwire.CodeNone && answer.LeaderEpoch < 0 {
			return failf(CauseDiverged, "the source [%d, %d) does not know leader epoch %d, in which the mirror "+
				"[%d, %d) ends", first.Offset, last.Offset, epoch, start, end), false, nil
		}
	}
	if p.feed.outside < outsideTries {
		p.feed.notBefore = time.Now().Add(f.mirror.cfg.Fetch.Backoff)
		return nil, false, nil
	}
	p.feed.outside = 0
	return failf(CauseDiverged, "the source [%d, %d) refuses offset %d, the mirror's end, as out of range %d times",
		first.Offset, last.Offset, end, outsideTries), false, nil
}

// overtaken handles retention at the source that passed our end: the range between is lost.
func (f *fetcher) overtaken(p *partition, start int64) *failure {
	log := p.feed.log
	end := log.LogEndOffset()
	if f.mirror.cfg.GapFail {
		return failf(CauseOvertaken, "offsets %d..%d are gone at the source", end, start-1)
	}
	span := LostSpan{From: end, To: start, AtMs: time.Now().UnixMilli()}
	if err := f.mirror.agent.states.append(StateRecord{
		Type: recordLostRange, Mirror: f.mirror.cfg.Name, Topic: p.tp.Topic, Partition: p.tp.Partition, Lost: span,
	}); err != nil {
		return failf(causeOf(err), "recording the lost range %d..%d: %v", end, start-1, err)
	}
	p.lose(span)
	f.mirror.logger.Warn("retention at the source passed the mirror: the log begins anew at the source's log start",
		topicAttr(p.tp), partitionAttr(p.tp), slog.Int64("lost_from", end), slog.Int64("lost_to", start),
		slog.Int64("removed_from", log.LogStartOffset()), slog.Int64("removed_to", end))
	if _, err := log.TruncateFullyAndStartAt(start); err != nil {
		return f.ioFailure(p, err)
	}
	p.feed.outside = 0
	p.stats.sourceStart.Store(start)
	return nil
}

// checkEpoch asks a broker that would not tell by itself where our newest epoch ends at the source. One that lacks the
// question, or refuses it, is believed.
func (f *fetcher) checkEpoch(ctx context.Context, p *partition) (why *failure, stale bool, err error) {
	epoch, known := p.feed.log.LatestSourceEpoch()
	if !known {
		return nil, false, nil
	}
	if _, err := f.conn.Version(fetchwire.KeyOffsetForLeaderEpoch); err != nil {
		return nil, false, nil
	}
	answer, err := f.epochEnd(ctx, p, epoch)
	if err != nil {
		return nil, false, err
	}
	if answer.LeaderEpoch < 0 { // version 0 does not say
		answer.LeaderEpoch = epoch
	}
	switch {
	case kindOf(answer.ErrorCode) == codeAuthorization:
		f.mirror.logger.Warn("the source does not tell where leader epochs end: an unclean election would not be noticed",
			topicAttr(p.tp), partitionAttr(p.tp), slog.Any("err", fetchwire.CodeError(answer.ErrorCode)))
		return nil, false, nil
	case answer.ErrorCode != fetchwire.CodeNone:
		why, stale = f.codeFailure(answer.ErrorCode)
		return why, stale, nil
	case answer.EndOffset < 0 || answer.EndOffset >= p.feed.log.LogEndOffset() && answer.LeaderEpoch == epoch:
		return nil, false, nil
	}
	f.diverged(p, fetchwire.EpochEndOffset{Epoch: answer.LeaderEpoch, EndOffset: answer.EndOffset})
	return nil, false, nil
}

// diverged handles the source's answer that our newest epoch ends there before our end. That our epochs go on where
// no record is cut needs no leave; a cut needs mirror.unclean.leader.election.enable, and a newer leader epoch that
// put other records there: a source that is only shorter never shortens its mirror.
func (f *fetcher) diverged(p *partition, theirs fetchwire.EpochEndOffset) {
	log := p.feed.log
	start, end := log.LogStartOffset(), log.LogEndOffset()
	cut := truncationPoint(log, theirs)
	p.feed.outside++
	if cut >= end && p.feed.outside <= outsideTries {
		if _, err := log.TruncateTo(end); err != nil {
			f.release(release{p: p, why: f.ioFailure(p, err)})
		}
		return
	}
	epoch, _ := log.LatestSourceEpoch()
	facts := fmt.Sprintf("the source's epoch %d ends at %d (leader epoch %d); the mirror [%d, %d) ends in epoch %d; "+
		"shared up to %d", theirs.Epoch, theirs.EndOffset, p.leaderEpoch.Load(), start, end, epoch, cut)
	switch {
	case !f.mirror.cfg.UncleanElection || cut < start || p.feed.outside > 2*outsideTries:
		f.release(release{p: p, why: failf(CauseDiverged, "diverged at %d: %s", cut, facts)})
		return
	case p.leaderEpoch.Load() >= 0 && p.leaderEpoch.Load() <= theirs.Epoch:
		f.release(release{p: p, why: failf(CauseSourceShorter, "%s: no newer epoch replaced these records", facts)})
		return
	}
	f.mirror.logger.Warn("truncating: the source elected a leader without these records", topicAttr(p.tp),
		partitionAttr(p.tp), slog.Int64("from", end), slog.Int64("to", cut), slog.String("why", facts))
	info, err := log.TruncateTo(cut)
	if err != nil {
		f.release(release{p: p, why: f.ioFailure(p, err)})
		return
	}
	p.stats.truncated.Add(info.From - info.To)
}

// truncationPoint is where our history and the source's part, by the source's epoch and its end.
//
// Kafka: AbstractFetcherThread.getOffsetTruncationState.
func truncationPoint(log *segment.Log, theirs fetchwire.EpochEndOffset) int64 {
	end := log.LogEndOffset()
	if theirs.EndOffset < 0 {
		return 0
	}
	epoch, ours := log.SourceEndOffsetFor(theirs.Epoch)
	switch {
	case epoch < 0:
		return min(theirs.EndOffset, end)
	case epoch != theirs.Epoch:
		return min(ours, end)
	default:
		return min(ours, theirs.EndOffset, end)
	}
}

// batchFacts is what identifies a batch, its epoch left out.
type batchFacts struct {
	base, last int64
	size       int
	crc        uint32
	found      bool
}

// compareTail compares our last batch with the source's at its offset. Logs that agree there agree below, so that the
// usual check is one batch; on a difference the end of the shared history is found by bisecting, for the failure's
// text. A compacted source may have dropped the batch: the epochs decide then.
func (f *fetcher) compareTail(ctx context.Context, p *partition) (why *failure, stale bool, err error) {
	log := p.feed.log
	start, end := log.LogStartOffset(), log.LogEndOffset()
	first, err := f.listOffsets(ctx, []*partition{p}, fetchwire.TimestampEarliest)
	if err != nil {
		return nil, false, err
	}
	theirs := first[p.tp]
	if theirs.ErrorCode != fetchwire.CodeNone {
		why, stale = f.codeFailure(theirs.ErrorCode)
		return why, stale, nil
	}
	last, err := f.listOffsets(ctx, []*partition{p}, fetchwire.TimestampLatest)
	if err != nil {
		return nil, false, err
	}
	if l := last[p.tp]; l.ErrorCode != fetchwire.CodeNone {
		why, stale = f.codeFailure(l.ErrorCode)
		return why, stale, nil
	} else if l.Offset < end { // what is absent does not differ: it may come back
		return failf(CauseSourceShorter, "the source holds [%d, %d), the mirror [%d, %d): nothing was cut",
			theirs.Offset, l.Offset, start, end), false, nil
	}
	if theirs.Offset >= end { // nothing is left to compare: the gap policy decides at the first fetch
		return nil, false, nil
	}
	low := max(start, theirs.Offset)
	same, stale, err := f.sameAt(ctx, p, end-1)
	switch {
	case err != nil || stale:
		return nil, stale, err
	case same || p.compacted.Load():
		return nil, false, nil
	}
	shared, err := f.bisect(ctx, p, low, end)
	if err != nil {
		return nil, false, err
	}
	if shared <= low {
		return failf(CauseDiverged, "no batch of the mirror [%d, %d) is the source's (log start %d)",
			start, end, theirs.Offset), false, nil
	}
	return failf(CauseDiverged, "the mirror [%d, %d) and the source share what is below %d and differ from there",
		start, end, shared), false, nil
}

// bisect returns the end of the shared history in [low, high].
func (f *fetcher) bisect(ctx context.Context, p *partition, low, high int64) (int64, error) {
	shared := low
	for low < high {
		middle := low + (high-low)/2
		ours, err := ourBatch(p.feed.log, middle)
		if err != nil {
			return shared, err
		}
		same, stale, err := f.sameAt(ctx, p, middle)
		if err != nil {
			return shared, err
		}
		if stale || !same {
			high = middle
			continue
		}
		low = max(middle, ours.last) + 1
		shared = low
	}
	return shared, nil
}

// sameAt reports whether both sides hold the same batch at offset.
func (f *fetcher) sameAt(ctx context.Context, p *partition, offset int64) (same, stale bool, err error) {
	ours, err := ourBatch(p.feed.log, offset)
	if err != nil {
		return false, false, err
	}
	if !ours.found {
		return false, false, nil
	}
	theirs, code, err := f.theirBatch(ctx, p, ours.base)
	if err != nil {
		return false, false, err
	}
	if code != fetchwire.CodeNone && code != fetchwire.CodeOffsetOutOfRange {
		return false, true, nil
	}
	return ours == theirs, false, nil
}

func ourBatch(log *segment.Log, offset int64) (batchFacts, error) {
	slice, err := log.Read(offset, 1, segment.ReadLogEnd)
	if err != nil {
		return batchFacts{}, err
	}
	var facts batchFacts
	err = slice.View(func(b []byte) error {
		facts = factsOf(b)
		return nil
	})
	return facts, errors.Join(err, slice.Release())
}

// batchHeaderSize is how much of a batch tells what it is.
const batchHeaderSize = 61

func factsOf(b []byte) batchFacts {
	if len(b) < batchHeaderSize {
		return batchFacts{}
	}
	head := segment.Batch(b)
	return batchFacts{
		base: head.BaseOffset(), last: head.LastOffset(), size: head.Size(), crc: head.CRC(), found: true,
	}
}

// theirBatch fetches one batch at offset, outside the session, and reads its head.
func (f *fetcher) theirBatch(ctx context.Context, p *partition, offset int64) (batchFacts, int16, error) {
	req := &fetchwire.FetchRequest{
		Version: fetchMaxVersion, ReplicaID: fetchwire.ConsumerReplicaID, ReplicaEpoch: -1, MaxBytes: 1, SessionEpoch: -1,
		Topics: []fetchwire.FetchTopic{{
			Topic: p.tp.Topic, TopicID: p.identity.Load().TopicID,
			Partitions: []fetchwire.FetchPartition{{
				Partition: p.tp.Partition, CurrentLeaderEpoch: -1, FetchOffset: offset, LastFetchedEpoch: -1,
				LogStartOffset: -1, MaxBytes: 1, HighWatermark: fetchwire.NoHighWatermark, MirrorLeaderEpoch: -1,
			}},
		}},
	}
	if p.identity.Load().TopicID.IsZero() {
		req.Version = 12
	}
	stream, err := f.conn.Fetch(ctx, req)
	if err != nil {
		return batchFacts{}, 0, err
	}
	code := stream.Head().ErrorCode
	var facts batchFacts
	for stream.Next() {
		head := stream.Partition()
		code = head.ErrorCode
		buf := make([]byte, min(head.RecordsSize, batchHeaderSize))
		n := 0
		for n < len(buf) {
			m, err := stream.Read(buf[n:])
			n += m
			if err != nil {
				break
			}
		}
		facts = factsOf(buf[:n])
	}
	return facts, code, errors.Join(stream.Err(), stream.Close())
}
