package replicator

import (
	"context"
	"log/slog"
	"time"
)

const (
	// maxThrottle is the longest time a source may send us away at once.
	maxThrottle = time.Minute
	// quotaOver is after how long without being sent away a source's quota counts as kept.
	quotaOver = 30 * time.Second
)

// sourceQuota is what a source broker said of its quota on our client id. Kafka answers at once, reads nothing from the
// connection for the time it names, and expects us to ask nothing meanwhile (KIP-219). Owner: a fetcher.
type sourceQuota struct {
	until  time.Time // nothing is asked before
	slowed bool      // told, and not over yet
	began  time.Time // slowed since
}

// holds reports whether the source told us to ask later.
func (q *sourceQuota) holds(now time.Time) bool { return q.until.After(now) }

// noteQuota takes up the throttle time of an answer.
func (f *fetcher) noteQuota(now time.Time, throttleMs int32) {
	q := &f.quota
	pause := throttlePause(throttleMs)
	switch {
	case pause > 0:
		q.until = now.Add(pause)
		f.stats.throttledUntil.Store(q.until.UnixMilli())
		if !q.slowed {
			q.slowed, q.began = true, now
			f.mirror.logger.Info("the source's quota slows the mirror", slog.Int("broker", int(f.key.broker)),
				slog.String("client_id", f.clientID()), slog.Duration("told_to_wait", pause))
		}
	case q.slowed && now.Sub(q.until) > quotaOver:
		q.slowed = false
		f.mirror.logger.Info("the source's quota slows the mirror no more", slog.Int("broker", int(f.key.broker)),
			slog.String("client_id", f.clientID()), slog.Duration("slowed_for", q.until.Sub(q.began)))
	}
}

// throttlePause bounds what a source may tell us to wait.
func throttlePause(throttleMs int32) time.Duration {
	return min(max(time.Duration(throttleMs)*time.Millisecond, 0), maxThrottle)
}

// sitOut waits for as long as the source told us to ask nothing, or for a command. It reports whether there was
// anything to wait for.
func (f *fetcher) sitOut(ctx context.Context) bool {
	now := time.Now()
	if !f.quota.holds(now) {
		return false
	}
	f.wait(ctx, f.quota.until.Sub(now))
	f.stats.throttledNs.Add(int64(time.Since(now)))
	return true
}
