package replicator

import (
	"context"
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
	theirs, why, stale, err := f.rangeOf(ctx, p)
	if why != nil || stale || err != nil {
		return why, stale, err
	}
	log := p.feed.log
	start, end := log.LogStartOffset(), log.LogEndOffset()
	switch {
	case end < theirs.start:
		return f.overtaken(p, theirs.start), false, nil
	case end > theirs.end:
		return theirs.shorterThan(start, end), false, nil
	}
	if forgot, err := forgetHollow(log); err != nil || forgot {
		if err != nil {
			return f.ioFailure(p, err), false, nil
		}
		return nil, false, nil
	}
	if epoch, ok := log.LatestSourceEpoch(); ok {
		answer, err := f.epochEnd(ctx, p, epoch)
		if err != nil {
			return nil, false, err
		}
		if answer.ErrorCode == fetchwire.CodeNone && answer.LeaderEpoch < 0 {
			return failf(CauseDiverged, "the source [%d, %d) does not know leader epoch %d, in which the mirror "+
				"[%d, %d) ends", theirs.start, theirs.end, epoch, start, end), false, nil
		}
	}
	if p.feed.outside < outsideTries {
		p.feed.notBefore = time.Now().Add(f.cfg.Fetch.Backoff)
		return nil, false, nil
	}
	p.feed.outside = 0
	return failf(CauseDiverged, "the source [%d, %d) refuses offset %d, the mirror's end, as out of range %d times",
		theirs.start, theirs.end, end, outsideTries), false, nil
}

// sourceRange is what a source holds of a partition: offsets [start, end).
type sourceRange struct{ start, end int64 }

// rangeOf asks the source what it holds of a partition.
func (f *fetcher) rangeOf(ctx context.Context, p *partition) (held sourceRange, why *failure, stale bool, err error) {
	for _, ask := range []struct {
		timestamp int64
		answer    *int64
	}{{fetchwire.TimestampEarliest, &held.start}, {fetchwire.TimestampLatest, &held.end}} {
		answers, err := f.listOffsets(ctx, []*partition{p}, ask.timestamp)
		if err != nil {
			return held, nil, false, err
		}
		if code := answers[p.tp].ErrorCode; code != fetchwire.CodeNone {
			why, stale = f.codeFailure(code)
			return held, why, stale, nil
		}
		*ask.answer = answers[p.tp].Offset
	}
	return held, nil, false, nil
}

// shorterThan says that a mirror of [start, end) holds more: what is absent does not differ, it may come back.
func (r sourceRange) shorterThan(start, end int64) *failure {
	return failf(CauseSourceShorter, "the source holds [%d, %d), the mirror [%d, %d): nothing was cut",
		r.start, r.end, start, end)
}

// overtaken handles retention at the source that passed our end: the range between is lost.
func (f *fetcher) overtaken(p *partition, start int64) *failure {
	log := p.feed.log
	end := log.LogEndOffset()
	if f.cfg.GapFail {
		return failf(CauseOvertaken, "offsets %d..%d are gone at the source", end, start-1)
	}
	span := LostSpan{From: end, To: start, AtMs: time.Now().UnixMilli()}
	if err := f.mirror.agent.states.append(StateRecord{
		Type: recordLostRange, Mirror: f.mirror.name, Topic: p.tp.Topic, Partition: p.tp.Partition, Lost: span,
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
	f.diverged(p, fetchwire.EpochEndOffset{Epoch: answer.LeaderEpoch, EndOffset: answer.EndOffset}, p.leaderEpoch.Load())
	return nil, false, nil
}

// diverged handles the source's answer that our newest epoch ends there before our end. That our epochs go on where
// no record is cut needs no leave; a cut needs mirror.unclean.leader.election.enable, and a newer leader epoch than the
// answered one: newest, -1 = not known. A source that is only shorter never shortens its mirror.
func (f *fetcher) diverged(p *partition, theirs fetchwire.EpochEndOffset, newest int32) {
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
		"shared up to %d", theirs.Epoch, theirs.EndOffset, newest, start, end, epoch, cut)
	switch {
	case newest >= 0 && newest <= theirs.Epoch && cut >= start:
		f.release(release{p: p, why: failf(CauseSourceShorter, "%s: no newer epoch replaced these records", facts)})
		return
	case !f.cfg.UncleanElection || cut < start || p.feed.outside > 2*outsideTries:
		f.release(release{p: p, why: failf(CauseDiverged, "diverged at %d: %s", cut, facts)})
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

// forgetHollow drops epochs that no record of the log is of: the source may have forgotten them, too.
func forgetHollow(log *segment.Log) (forgot bool, err error) {
	entries, end := log.SourceEpochEntries(), log.LogEndOffset()
	if len(entries) == 0 || entries[len(entries)-1].StartOffset < end || end == log.LogStartOffset() {
		return false, nil
	}
	_, err = log.TruncateTo(end)
	return true, err
}

// willPart reports whether the source will answer the first fetch with an epoch that replaced our newest: that answer
// settles then what becomes of a difference that was met while the partition was FAILED.
func (f *fetcher) willPart(ctx context.Context, p *partition) (bool, error) {
	epoch, known := p.feed.log.LatestSourceEpoch()
	if !known || !f.tellsDivergence {
		return false, nil
	}
	got, err := f.peek(ctx, p, p.feed.log.LogEndOffset(), epoch)
	if err != nil || got.code != fetchwire.CodeNone || !got.tail.Diverged() {
		return false, err
	}
	return f.newestEpoch(p, &got.tail) > got.tail.DivergingEpoch.Epoch, nil
}

// compareTail compares our last batch with the source's at its offset. Logs that agree there agree below, so that the
// usual check is one batch; on a difference the end of the shared history is found by bisecting, for the failure's
// text. A compacted source may have dropped the batch: the epochs decide then.
func (f *fetcher) compareTail(ctx context.Context, p *partition) (why *failure, stale bool, err error) {
	log := p.feed.log
	start, end := log.LogStartOffset(), log.LogEndOffset()
	theirs, why, stale, err := f.rangeOf(ctx, p)
	switch {
	case why != nil || stale || err != nil:
		return why, stale, err
	case theirs.end < end:
		if parts, err := f.willPart(ctx, p); parts || err != nil {
			return nil, false, err
		}
		return theirs.shorterThan(start, end), false, nil
	case theirs.start >= end: // nothing is left to compare: the gap policy decides at the first fetch
		return nil, false, nil
	}
	low := max(start, theirs.start)
	same, stale, err := f.sameAt(ctx, p, end-1)
	switch {
	case err != nil || stale:
		return nil, stale, err
	case same || p.compacted.Load():
		return nil, false, nil
	}
	if f.cfg.UncleanElection {
		if parts, err := f.willPart(ctx, p); parts || err != nil {
			return nil, false, err
		}
	}
	shared, err := f.bisect(ctx, p, low, end)
	if err != nil {
		return nil, false, err
	}
	if shared <= low {
		return failf(CauseDiverged, "no batch of the mirror [%d, %d) is the source's (log start %d)",
			start, end, theirs.start), false, nil
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
