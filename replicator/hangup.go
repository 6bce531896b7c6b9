package replicator

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"
)

// hangGrace is how long beyond its long poll a source may be silent while a partition is to be let go.
const hangGrace = time.Second

var errHungUp = errors.New("hung up: the source was silent and a partition was to be let go")

// link is a fetcher's connection as those see it who may hang it up.
type link struct {
	stop context.CancelFunc // ends the fetcher; immutable

	// owner
	ctx       context.Context // of the connection: ends with run's, or when it is hung up
	dialFails int             // in a row
	refusals  int             // answers refused as a whole, in a row

	// atomic; asking is the newest sign of life of a source that is waited for, ns of the clock; 0 = none is.
	asking   atomic.Int64
	hangUp   atomic.Pointer[context.CancelCauseFunc] // ends ctx
	watching atomic.Bool                             // somebody looks whether commands are taken
}

// newLink returns the context of the next connection.
func (f *fetcher) newLink(ctx context.Context) context.Context {
	f.dropLink()
	link, cancel := context.WithCancelCause(ctx)
	f.link.hangUp.Store(&cancel)
	f.link.ctx = link
	f.link.asking.Store(time.Now().UnixNano())
	return link
}

func (f *fetcher) dropLink() {
	if cancel := f.link.hangUp.Swap(nil); cancel != nil {
		(*cancel)(nil)
	}
}

// remove asks for a partition back, which comes as a release. A source that hangs does not keep it: if it is silent
// for longer than its long poll may take, the connection is given up, while it has mirror.socket.timeout.ms as long as
// nobody wants a partition back. Any goroutine.
func (f *fetcher) remove(p *partition) {
	f.inbox.put(command{p: p, remove: true})
	if !f.link.watching.Swap(true) {
		f.watch(f.patience())
	}
}

// patience is how long a source may be silent while somebody waits.
func (f *fetcher) patience() time.Duration { return f.cfg.Fetch.WaitMax + hangGrace }

// watch looks after d whether the fetcher has taken its commands, and hangs up if it cannot.
func (f *fetcher) watch(d time.Duration) {
	time.AfterFunc(d, func() {
		select {
		case <-f.done:
			return
		default:
		}
		f.link.watching.Store(false)
		if f.inbox.empty() || f.link.watching.Swap(true) {
			return
		}
		again := f.patience()
		if since := f.link.asking.Load(); since > 0 {
			if left := again - time.Since(time.Unix(0, since)); left > 0 {
				again = left
			} else if cancel := f.link.hangUp.Load(); cancel != nil {
				f.mirror.logger.Warn("hanging up: the source broker is silent and partitions are to be let go",
					slog.Int("broker", int(f.key.broker)), slog.String("addr", *f.addr.Load()))
				(*cancel)(errHungUp)
			}
		}
		f.watch(again)
	})
}
