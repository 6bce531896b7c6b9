package replicator

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// prepareFresh runs what a start needs for the partitions that were added, and seats those that are ready. The
// source's answers for all of them are asked for together, and their MIRRORING is stored with one sync.
func (f *fetcher) prepareFresh(ctx context.Context) {
	if len(f.fresh) == 0 {
		return
	}
	if err := f.startPositions(ctx); err != nil {
		f.lost(ctx, err)
		return
	}
	var ready []*partition
	var records []StateRecord
	for _, p := range slices.Clone(f.fresh) {
		why, stale, err := f.prepare(ctx, p)
		if err != nil {
			f.lost(ctx, err)
			break
		}
		if why != nil || stale {
			f.release(release{p: p, why: why, stale: stale})
			continue
		}
		if p.state() == StatePreparing {
			r := p.record()
			r.State, r.Cause, r.Text, r.Attempts = StateMirroring, CauseNone, "", 0
			records = append(records, r)
		}
		ready = append(ready, p)
	}
	if err := f.mirror.agent.states.append(records...); err != nil {
		for _, p := range ready {
			if p.state() == StatePreparing {
				f.release(release{p: p, why: failf(causeOf(err), "%v", err)})
			}
		}
	}
	for _, p := range ready {
		i := slices.Index(f.fresh, p)
		if i < 0 {
			continue
		}
		f.fresh = slices.Delete(f.fresh, i, i+1)
		if p.state() == StatePreparing {
			p.move(StateMirroring, nil)
			p.feed.prior = CauseNone
		}
		f.seat(p)
	}
	f.letGo(nil)
}

// causeOf sorts an error of a file here.
func causeOf(err error) Cause {
	if isNoSpace(err) {
		return CauseDiskFull
	}
	return CauseIO
}

// startPositions settles where empty partitions begin.
func (f *fetcher) startPositions(ctx context.Context) error {
	var empty []*partition
	for _, p := range f.fresh {
		if p.state() == StatePreparing && needsStart(p) {
			empty = append(empty, p)
		}
	}
	if len(empty) == 0 {
		return nil
	}
	start := f.cfg.Start
	earliest, err := f.listOffsets(ctx, empty, fetchwire.TimestampEarliest)
	if err != nil {
		return err
	}
	latest, err := f.listOffsets(ctx, empty, fetchwire.TimestampLatest)
	if err != nil {
		return err
	}
	var at map[segment.TopicPartition]fetchwire.ListOffsetsResult
	if start.At == StartTimestamp {
		if at, err = f.listOffsets(ctx, empty, start.Value); err != nil {
			return err
		}
	}
	outcomes := make([]release, len(empty))
	inParallel(len(empty), func(i int) {
		p := empty[i]
		why, stale := f.startOne(p, earliest[p.tp], latest[p.tp], at[p.tp])
		outcomes[i] = release{p: p, why: why, stale: stale}
	})
	for _, r := range outcomes {
		if r.why != nil || r.stale {
			f.release(r)
		}
	}
	return nil
}

// syncsAtOnce is how many small files are made durable at the same time: a file system syncs many as fast as one.
const syncsAtOnce = 64

// inParallel calls do for 0 to n-1 on a few goroutines, and returns when all have returned.
func inParallel(n int, do func(i int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, syncsAtOnce) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	workers.Wait()
}

// needsStart reports whether p has no record and was never started from this source.
func needsStart(p *partition) bool {
	_, bound := p.feed.log.Source()
	return !bound && p.feed.log.LogStartOffset() == p.feed.log.LogEndOffset()
}

func (f *fetcher) startOne(p *partition, earliest, latest, at fetchwire.ListOffsetsResult) (*failure, bool) {
	for _, answer := range []fetchwire.ListOffsetsResult{earliest, latest, at} {
		if answer.ErrorCode != fetchwire.CodeNone {
			return f.codeFailure(answer.ErrorCode)
		}
	}
	offset := earliest.Offset
	start := f.cfg.Start
	if p.late && start.At != StartTimestamp { // nothing of it was there when the mirror was told where to begin
		start = StartPosition{At: StartEarliest}
	}
	switch start.At {
	case StartEarliest:
	case StartLatest:
		offset = latest.Offset
	case StartTimestamp:
		if offset = at.Offset; offset < 0 { // every record is older
			offset = latest.Offset
		}
	case StartOffset:
		offset = start.Value
		if offset > latest.Offset {
			return failf(CauseSourceShorter, "mirror.start.position is offset %d, the source ends at %d",
				offset, latest.Offset), false
		}
		if offset < earliest.Offset {
			f.mirror.logger.Warn("the start position is gone at the source", topicAttr(p.tp), partitionAttr(p.tp),
				slog.Int64("asked", offset), slog.Int64("offset", earliest.Offset))
			offset = earliest.Offset
		}
	}
	if offset < 0 {
		return failf(CauseProtocol, "the source named offset %d as a start", offset), false
	}
	log := p.feed.log
	if offset != log.LogEndOffset() || offset != log.LogStartOffset() {
		if _, err := log.TruncateFullyAndStartAt(offset); err != nil {
			return f.ioFailure(p, err), false
		}
	}
	err := log.Bind(*p.identity.Load())
	if err == nil && f.announces {
		err = log.AnnounceEpochs(true) // here, where partitions are worked on beside each other
	}
	if err != nil {
		return f.ioFailure(p, err), false
	}
	f.mirror.logger.Info("starting", topicAttr(p.tp), partitionAttr(p.tp), slog.Int64("offset", offset),
		slog.Int64("source_start", earliest.Offset), slog.Int64("source_end", latest.Offset))
	return nil, false
}

// codeFailure turns a code of an answer to a question of ours into a failure, or into a second look at the metadata.
func (f *fetcher) codeFailure(code int16) (*failure, bool) {
	switch kindOf(code) {
	case codeStale, codePassing:
		return nil, true
	case codeAuthorization:
		return failf(CauseNotAuthorized, "%v", fetchwire.CodeError(code)), false
	default:
		return failf(CauseProtocol, "broker %d answered: %v", f.key.broker, fetchwire.CodeError(code)), false
	}
}

// prepare checks that what is on disk is a copy of this source before more is appended to it. err is the
// connection's.
func (f *fetcher) prepare(ctx context.Context, p *partition) (why *failure, stale bool, err error) {
	if p.state() == StatePreparing {
		why, stale, err = f.compare(ctx, p)
	}
	if why != nil || stale || err != nil {
		return why, stale, err
	}
	if why, stale, err = f.settleEpochs(ctx, p); why != nil || stale || err != nil || f.tellsDivergence {
		return why, stale, err
	}
	return f.checkEpoch(ctx, p)
}

// compare settles whether a copy that starts is one of this source.
func (f *fetcher) compare(ctx context.Context, p *partition) (why *failure, stale bool, err error) {
	log := p.feed.log
	want := *p.identity.Load()
	bound, known := log.Source()
	if known && bound != want {
		return mismatch(bound, want), false, nil
	}
	_, hasEpoch := log.LatestSourceEpoch()
	empty := log.LogEndOffset() == log.LogStartOffset()
	switch {
	case empty && known:
		return nil, false, nil
	case empty:
		return nil, true, nil // needs its start position, which the next round settles
	case known && hasEpoch && !p.feed.prior.wantsLook():
		return nil, false, nil
	}
	why, stale, err = f.compareTail(ctx, p)
	if why != nil || stale || err != nil {
		return why, stale, err
	}
	if !known || !hasEpoch {
		if why, stale, err = f.restoreEpochs(ctx, p); why != nil || stale || err != nil {
			return why, stale, err
		}
	}
	if err := log.Bind(want); err != nil {
		return f.ioFailure(p, err), false, nil
	}
	return nil, false, nil
}

// wantsLook reports whether a partition that failed for this cause is compared with its source before it goes on.
func (c Cause) wantsLook() bool {
	switch c {
	case CauseSourceShorter, CauseDiverged, CauseCreatedAgain, CauseClusterChanged, CauseTopicGone:
		return true
	default:
		return false
	}
}

// mismatch says that a partition's records came from elsewhere.
func mismatch(bound, want segment.SourceID) *failure {
	if bound.ClusterID != want.ClusterID {
		return failf(CauseClusterChanged, "the copy is of cluster %s, the source is now %s", bound.ClusterID, want.ClusterID)
	}
	return failf(CauseCreatedAgain, "the copy is of topic id %s, the source's topic has id %s: created again",
		bound.TopicID, want.TopicID)
}

// listOffsets asks for one offset of each partition; a partition without an answer has code UNKNOWN_SERVER_ERROR.
func (f *fetcher) listOffsets(ctx context.Context, parts []*partition, timestamp int64,
) (map[segment.TopicPartition]fetchwire.ListOffsetsResult, error) {
	req := fetchwire.ListOffsetsRequest{ReplicaID: fetchwire.ConsumerReplicaID, TimeoutMs: 30000}
	topics := map[string]int{}
	out := map[segment.TopicPartition]fetchwire.ListOffsetsResult{}
	for _, p := range parts {
		i, ok := topics[p.tp.Topic]
		if !ok {
			i = len(req.Topics)
			topics[p.tp.Topic] = i
			req.Topics = append(req.Topics, fetchwire.ListOffsetsTopic{Name: p.tp.Topic})
		}
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, fetchwire.ListOffsetsPartition{
			Index: p.tp.Partition, CurrentLeaderEpoch: p.leaderEpoch.Load(), Timestamp: timestamp,
		})
		out[p.tp] = fetchwire.ListOffsetsResult{ErrorCode: fetchwire.CodeUnknownServerError}
	}
	resp, err := f.conn.ListOffsets(ctx, &req)
	if err != nil {
		return nil, err
	}
	for _, t := range resp.Topics {
		for _, r := range t.Partitions {
			out[segment.TopicPartition{Topic: t.Name, Partition: r.Index}] = r
		}
	}
	return out, nil
}

// errAnswer marks an answer of the source that lacks what was asked for.
var errAnswer = errors.New("incomplete answer")
