package replicator

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"time"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// apply takes one partition's part of an answer: every branch on codes and epochs is here. The good case makes two
// calls, one to read and commit and one to move on.
func (f *fetcher) apply(ctx context.Context, stream *fetchwire.FetchStream) {
	head := stream.Partition()
	if head.Slot < 0 || head.Slot >= len(f.slots) || f.slots[head.Slot] == nil {
		stream.Finish() // left while its answer was under way
		return
	}
	p := f.slots[head.Slot]
	var info segment.AppendInfo
	var err error
	sane := head.ErrorCode != fetchwire.CodeNone ||
		head.HighWatermark >= 0 && head.LogStartOffset <= head.HighWatermark
	from := p.feed.log.LogEndOffset()
	if head.ErrorCode == fetchwire.CodeNone && head.RecordsSize > 0 && sane {
		f.makeRoom(p)
		info, err = p.feed.log.AppendFrom(stream, head.RecordsSize, f.epochLimit(p))
	}
	now := time.Now()
	f.link.asking.Store(now.UnixNano())
	p.noteAppend(&info, now)
	f.charge(p, &info)
	tail, finishErr := stream.Finish()
	if finishErr != nil { // the connection broke: what was whole is appended, the rest is asked for again
		if err != nil && !errors.Is(err, segment.ErrRead) {
			f.appendFailed(p, err)
		}
		return
	}
	switch {
	case err != nil:
		f.appendFailed(p, err)
	case head.ErrorCode != fetchwire.CodeNone:
		f.refused(p, head.ErrorCode, tail.CurrentLeader, now)
	case tail.DivergingEpoch.Epoch >= 0 || tail.DivergingEpoch.EndOffset >= 0:
		f.diverged(p, tail.DivergingEpoch, f.newestEpoch(p, &tail))
	case !sane: // a log start that is followed blindly removes records
		f.failedTry(p, now, "the source says log start %d and high watermark %d", head.LogStartOffset, head.HighWatermark)
	case f.announces && !f.told(p, tail.MirrorLeaderEpoch, from, now): // nothing of the answer counts
	default:
		f.advance(p, head, &info, now)
	}
}

// charge counts what was appended of a partition against the throttles it is under.
func (f *fetcher) charge(p *partition, info *segment.AppendInfo) {
	if info.Bytes == 0 {
		return
	}
	if p.feed.listed {
		f.mirror.agent.throttles.node.take(f.plan.asked, int64(info.Bytes), f.plan.window)
	}
	f.mirror.throttle.take(f.plan.asked, int64(info.Bytes), f.plan.window)
}

// advance moves the high watermark and the log start after the source's, and forgets past troubles.
func (f *fetcher) advance(p *partition, head *fetchwire.PartitionHead, info *segment.AppendInfo, now time.Time) {
	log := p.feed.log
	p.stats.sourceOffset.Store(head.HighWatermark)
	p.feed.noteLag(head.HighWatermark-log.LogEndOffset(), info)
	if !f.announces && head.HighWatermark == log.LogEndOffset() {
		f.heardEpoch(p, p.leaderEpoch.Load())
	}
	if head.HighWatermark > log.HighWatermark() {
		log.UpdateHighWatermark(min(head.HighWatermark, log.LogEndOffset()))
		f.mirror.agent.served.notify()
	}
	if info.DroppedTxns > 0 {
		f.mirror.logger.Error("a producer reset of the source left transactions open", topicAttr(p.tp),
			partitionAttr(p.tp), slog.Int("transactions", info.DroppedTxns), slog.Int64("offset", log.LogEndOffset()))
	}
	if info.Gaps > 0 && !p.compacted.Load() {
		f.mirror.logger.Warn("offsets are missing at the source, which does not compact this topic", topicAttr(p.tp),
			partitionAttr(p.tp), slog.Int64("from", info.GapFrom), slog.Int64("to", info.GapTo),
			slog.Int("gaps", info.Gaps))
	}
	p.feed.outside, p.feed.steady = 0, true
	if info.Batches > 0 {
		p.feed.corrupt = 0
	}
	if head.LogStartOffset > p.stats.sourceStart.Load() {
		p.stats.sourceStart.Store(head.LogStartOffset)
		f.followLogStart(p, head.LogStartOffset)
	}
	if head.RecordsSize > 0 && info.Batches == 0 {
		f.noProgress(p, info, now)
		return
	}
	p.feed.errors = 0
	if p.stats.attempts.Load() != 0 {
		p.stats.attempts.Store(0)
	}
}

// noProgress handles records that held no whole batch for us: of a higher epoch than the leader we know, or cut
// short although the source sends at least one whole batch.
func (f *fetcher) noProgress(p *partition, info *segment.AppendInfo, now time.Time) {
	if info.HigherEpoch {
		f.release(release{p: p, stale: true})
		return
	}
	f.failedTry(p, now, "the source answers with less than a whole batch at offset %d", p.feed.log.LogEndOffset())
}

// failedTry counts an answer that makes no sense, and after passingTries in a row lets the partition go.
func (f *fetcher) failedTry(p *partition, now time.Time, format string, args ...any) {
	p.feed.notBefore = now.Add(f.cfg.Fetch.Backoff)
	if p.feed.errors++; p.feed.errors < passingTries {
		return
	}
	p.feed.errors = 0
	f.release(release{p: p, why: failf(CauseProtocol, format+" (broker %d, %d times)",
		append(args, f.key.broker, passingTries)...)})
}

func (f *fetcher) followLogStart(p *partition, start int64) {
	log := p.feed.log
	start = min(start, log.LogEndOffset())
	if start <= log.LogStartOffset() {
		return
	}
	from := log.LogStartOffset()
	removed, err := log.AdvanceLogStart(start)
	if err != nil {
		f.release(release{p: p, why: f.ioFailure(p, err)})
		return
	}
	f.mirror.logger.Info("log start follows the source", topicAttr(p.tp), partitionAttr(p.tp),
		slog.Int64("from", from), slog.Int64("to", start), slog.Int("segments_removed", len(removed)))
}

// appendFailed sorts what AppendFrom refused: the source's fault, ours, or the connection's.
func (f *fetcher) appendFailed(p *partition, err error) {
	var corrupt *segment.CorruptError
	switch {
	case errors.As(err, &corrupt):
		cause := CauseCorruptBatch
		if errors.Is(err, segment.ErrOffsetsOutOfOrder) {
			cause = CauseOutOfOrder
		}
		f.mirror.errors.add(cause)
		if p.feed.corrupt++; p.feed.corrupt < corruptTries {
			f.mirror.logger.Warn("a batch was refused, asking again", topicAttr(p.tp), partitionAttr(p.tp),
				slog.Int64("offset", corrupt.Offset), slog.Int("attempt", p.feed.corrupt), slog.Any("err", err))
			return
		}
		p.feed.corrupt = 0
		f.release(release{p: p, why: failf(cause, "%v (from broker %d, %d times)", err, f.key.broker, corruptTries)})
	case errors.Is(err, segment.ErrLogFailed), errors.Is(err, segment.ErrNoSpace):
		f.release(release{p: p, why: f.ioFailure(p, err)})
	case errors.Is(err, segment.ErrRead): // the stream says so itself
	default:
		f.release(release{p: p, why: f.ioFailure(p, err)})
	}
}

// refused sorts a partition's error code.
func (f *fetcher) refused(p *partition, code int16, hint fetchwire.LeaderIDAndEpoch, now time.Time) {
	switch kindOf(code) {
	case codeStale:
		f.release(release{p: p, stale: true, hint: hint})
	case codeOutOfRange:
		p.feed.outside++
		f.suspects(p)
	case codeAuthorization:
		f.release(release{p: p, why: failf(CauseNotAuthorized, "%v", fetchwire.CodeError(code))})
	case codeCorrupt:
		f.release(release{p: p, why: failf(CauseCorruptBatch, "the source cannot read its own batch at offset %d: %v",
			p.feed.log.LogEndOffset(), fetchwire.CodeError(code))})
	case codePassing:
		f.failedTry(p, now, "%v", fetchwire.CodeError(code))
	default:
		f.release(release{p: p, why: failf(CauseProtocol, "broker %d answered: %v", f.key.broker,
			fetchwire.CodeError(code))})
	}
}

// codeKind is what a partition's error code asks of us.
type codeKind int8

const (
	codeOther codeKind = iota
	codeStale
	codeOutOfRange
	codeAuthorization
	codeCorrupt
	codePassing
)

func kindOf(code int16) codeKind {
	switch code {
	case fetchwire.CodeNotLeaderOrFollower, fetchwire.CodeLeaderNotAvailable, fetchwire.CodeFencedLeaderEpoch,
		fetchwire.CodeUnknownLeaderEpoch, fetchwire.CodeReplicaNotAvailable, fetchwire.CodeBrokerNotAvailable,
		fetchwire.CodeUnknownTopicOrPartition, fetchwire.CodeUnknownTopicID, fetchwire.CodeInconsistentTopicID:
		return codeStale
	case fetchwire.CodeOffsetOutOfRange:
		return codeOutOfRange
	case fetchwire.CodeTopicAuthorizationFailed, fetchwire.CodeClusterAuthorization:
		return codeAuthorization
	case fetchwire.CodeCorruptMessage:
		return codeCorrupt
	}
	if fetchwire.Retriable(code) || code == fetchwire.CodeUnknownServerError || code == fetchwire.CodeKafkaStorageError {
		return codePassing
	}
	return codeOther
}

func hostPort(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }
