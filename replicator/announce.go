package replicator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// An agent may have stamped other epochs on its batches than its source's, and what it says of their epoch stands
// behind them in its answer, while here the epoch must be durable before they are appended. So it is announced: to a
// fetch that names another epoch than the batches at its offset are of, an agent answers at once with their epoch and
// no records. We record that and ask again with it. Records come only of the epoch a fetch named.

// settleEpochs makes the log take its source's epochs the way this source tells them.
func (f *fetcher) settleEpochs(ctx context.Context, p *partition) (why *failure, stale bool, err error) {
	log := p.feed.log
	if _, bound := log.Source(); !bound {
		return nil, false, nil
	}
	switch {
	case f.announces && p.identity.Load().TopicID.IsZero():
		return failf(CauseProtocol, "the topic has no id at the agent it is mirrored from, whose source has none either: "+
			"epochs are told by topic id only"), false, nil
	case f.announces == log.EpochsAnnounced():
		return nil, false, nil
	case f.announces:
		if err := log.AnnounceEpochs(true); err != nil {
			return f.ioFailure(p, err), false, nil
		}
		return nil, false, nil
	}
	// The source told its epochs beside the batches and does not any more: what it says of its history must be ours.
	var theirs []segment.EpochEntry
	if log.LogStartOffset() < log.LogEndOffset() {
		if theirs, why, stale, err = f.sourceHistory(ctx, p); why != nil || stale || err != nil {
			return why, stale, err
		}
	}
	if _, err := forgetHollow(log); err != nil {
		return f.ioFailure(p, err), false, nil
	}
	if ours := log.SourceEpochEntries(); !slices.Equal(ours, theirs) {
		return failf(CauseProtocol, "broker %d does not announce the epochs of its source, and those it has, %v, are not "+
			"the mirror's %v", f.key.broker, theirs, ours), false, nil
	}
	if err := log.AnnounceEpochs(false); err != nil {
		return f.ioFailure(p, err), false, nil
	}
	return nil, false, nil
}

// epochLimit is the highest epoch that batches from this source may carry: none is known of an agent's.
func (f *fetcher) epochLimit(p *partition) int32 {
	if f.announces {
		return -1
	}
	return p.leaderEpoch.Load()
}

// told takes the epoch that an agent says of its answer's records, -1 for none said; they were appended at from. False
// when the answer does not count: the epoch was news, or other records than were asked for are cut again.
func (f *fetcher) told(p *partition, epoch int32, from int64, now time.Time) bool {
	log := p.feed.log
	f.heardEpoch(p, epoch)
	known, ok := log.LatestSourceEpoch()
	if epoch < 0 && log.LogEndOffset() == from || epoch >= 0 && ok && epoch == known {
		return true
	}
	if end := log.LogEndOffset(); end != from {
		f.mirror.logger.Warn("truncating: an agent sent records of another epoch than it announced", topicAttr(p.tp),
			partitionAttr(p.tp), slog.Int64("from", end), slog.Int64("to", from), slog.Int("announced", int(known)),
			slog.Int("epoch", int(epoch)))
		if _, err := log.TruncateTo(from); err != nil {
			f.release(release{p: p, why: f.ioFailure(p, err)})
			return false
		}
		f.failedTry(p, now, "the source sent records of epoch %d and had announced %d", epoch, known)
		return false
	}
	if !p.feed.announced {
		p.feed.announced = true
		f.announced = append(f.announced, announcement{p: p, epoch: epoch})
	}
	return false
}

// announcement is an epoch that a source told of a partition's next records.
type announcement struct {
	p     *partition
	epoch int32
	err   error
}

// recordAnnounced makes what an answer announced durable, all partitions together: a file system syncs many files as
// fast as one.
func (f *fetcher) recordAnnounced(now time.Time) {
	inParallel(len(f.announced), func(i int) {
		a := &f.announced[i]
		a.err = a.p.feed.log.AnnounceEpoch(a.epoch)
	})
	for _, a := range f.announced {
		a.p.feed.announced = false
		switch {
		case errors.Is(a.err, segment.ErrEpochFalls):
			f.failedTry(a.p, now, "%v", a.err)
		case a.err != nil:
			f.release(release{p: a.p, why: f.ioFailure(a.p, a.err)})
		}
	}
	f.announced = f.announced[:0]
}

// newestEpoch is the newest epoch that the source is known to have led in, -1 = not known.
func (f *fetcher) newestEpoch(p *partition, tail *fetchwire.PartitionTail) int32 {
	if !f.announces {
		return p.leaderEpoch.Load()
	}
	f.heardEpoch(p, tail.MirrorLeaderEpoch)
	return p.feed.held.newestEpoch()
}

// heardEpoch notes an epoch that the source leads in where our copy has all of its records, for those who mirror from
// here: what they hold beyond our end and of an older epoch is not the source's any more.
func (f *fetcher) heardEpoch(p *partition, epoch int32) {
	if held := p.feed.held; epoch >= held.epochsHeard.Load() {
		held.epochsHeard.Store(epoch + 1)
	}
}

// epochRounds bounds how many leader epochs are asked for: a history this long is not one of elections.
const epochRounds = 10_000

// restoreEpochs asks the source for the history of leader epochs of the range we hold, for a log that lost it.
func (f *fetcher) restoreEpochs(ctx context.Context, p *partition) (why *failure, stale bool, err error) {
	entries, why, stale, err := f.sourceHistory(ctx, p)
	if why != nil || stale || err != nil || len(entries) == 0 {
		return why, stale, err
	}
	log := p.feed.log
	if err := log.Bind(*p.identity.Load()); err != nil {
		return f.ioFailure(p, err), false, nil
	}
	if err := log.ReplaceSourceEpochs(entries); err != nil {
		return f.ioFailure(p, err), false, nil
	}
	f.mirror.logger.Info("source epochs restored", topicAttr(p.tp), partitionAttr(p.tp), slog.Int("entries", len(entries)))
	return nil, false, nil
}

// sourceHistory asks the source for the leader epochs of the range we hold: from the newest epoch down, each answer
// naming the epoch to look below, so that the rounds are the epochs there are.
func (f *fetcher) sourceHistory(ctx context.Context, p *partition) (
	entries []segment.EpochEntry, why *failure, stale bool, err error,
) {
	start, end := p.feed.log.LogStartOffset(), p.feed.log.LogEndOffset()
	upper := fetchwire.OffsetForLeaderResult{LeaderEpoch: -1}
	epoch, stale, err := f.topEpoch(ctx, p)
	if stale || err != nil {
		return nil, nil, stale, err
	}
	for range epochRounds {
		answer, err := f.epochEnd(ctx, p, epoch)
		if err != nil {
			return nil, nil, false, err
		}
		if answer.ErrorCode != fetchwire.CodeNone {
			why, stale = f.codeFailure(answer.ErrorCode)
			return nil, why, stale, nil
		}
		// An epoch that ends where the one above it does is below the first: the leader knows none of that name.
		begins := max(answer.EndOffset, start)
		known := upper.LeaderEpoch >= 0 && answer.EndOffset < upper.EndOffset
		if known && begins < end {
			entries = append(entries, segment.EpochEntry{Epoch: upper.LeaderEpoch, StartOffset: begins})
		}
		if answer.LeaderEpoch < 0 || answer.EndOffset <= start || upper.LeaderEpoch >= 0 && !known {
			slices.Reverse(entries)
			return entries, nil, false, nil
		}
		if answer.LeaderEpoch > epoch {
			return nil, failf(CauseProtocol, "asked for leader epoch %d the source answers with %d", epoch,
				answer.LeaderEpoch), false, nil
		}
		upper, epoch = answer, answer.LeaderEpoch-1
		if epoch < 0 {
			slices.Reverse(entries)
			return append([]segment.EpochEntry{{Epoch: 0, StartOffset: start}}, entries...), nil, false, nil
		}
	}
	return nil, failf(CauseProtocol, "the source names more than %d leader epochs below %d", epochRounds, end), false, nil
}

// topEpoch is an epoch of the source from which its history can be asked down: the leader's, or what an agent announces
// at our last record; stale when it does not tell yet.
func (f *fetcher) topEpoch(ctx context.Context, p *partition) (epoch int32, stale bool, err error) {
	if !f.announces {
		return max(p.leaderEpoch.Load(), 0), false, nil
	}
	got, err := f.peek(ctx, p, p.feed.log.LogEndOffset()-1, -1)
	return got.tail.MirrorLeaderEpoch, got.code != fetchwire.CodeNone || got.tail.MirrorLeaderEpoch < 0, err
}

// epochEnd asks where a leader epoch ends at the source.
func (f *fetcher) epochEnd(ctx context.Context, p *partition, epoch int32) (fetchwire.OffsetForLeaderResult, error) {
	resp, err := f.conn.OffsetForLeaderEpoch(ctx, &fetchwire.OffsetForLeaderEpochRequest{
		ReplicaID: fetchwire.ConsumerReplicaID,
		Topics: []fetchwire.OffsetForLeaderTopic{{
			Topic: p.tp.Topic,
			Partitions: []fetchwire.OffsetForLeaderPartition{{
				Partition: p.tp.Partition, CurrentLeaderEpoch: p.leaderEpoch.Load(), LeaderEpoch: epoch,
			}},
		}},
	})
	if err != nil {
		return fetchwire.OffsetForLeaderResult{}, err
	}
	for _, t := range resp.Topics {
		for _, r := range t.Partitions {
			if t.Topic == p.tp.Topic && r.Partition == p.tp.Partition {
				return r, nil
			}
		}
	}
	return fetchwire.OffsetForLeaderResult{}, fmt.Errorf("%w: no answer for %s", errAnswer, p.tp)
}
