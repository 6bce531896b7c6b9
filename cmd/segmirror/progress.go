package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows how far long work has come: a bar on a terminal, elsewhere a plain line a second while it moves.
type progress struct {
	out      io.Writer
	what     string
	total    int64
	bar      *progressbar.ProgressBar // nil elsewhere than on a terminal
	began    time.Time
	lastLine time.Time
	lastDone int64
}

// lineEvery is the pace of plain lines.
const lineEvery = time.Second

// newProgress begins to show work of total units of what.
func newProgress(out io.Writer, what string, total int64) *progress {
	p := &progress{out: out, what: what, total: total, began: time.Now()}
	p.lastLine = p.began
	if isTerminal(out) {
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(out), progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetPredictTime(true))
	}
	return p
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// show reports done units and the bytes they took. A total found to be larger than thought is raised.
func (p *progress) show(done, bytes int64) {
	p.total = max(p.total, done)
	rate := float64(bytes) / 1e6 / max(time.Since(p.began).Seconds(), 0.001)
	if p.bar != nil {
		p.bar.ChangeMax64(p.total)
		p.bar.Describe(fmt.Sprintf("%s %.0f MB/s", p.what, rate))
		// A bar that cannot be drawn is no reason to stop the work.
		_ = p.bar.Set64(done)
		return
	}
	if now := time.Now(); done != p.lastDone && now.Sub(p.lastLine) >= lineEvery {
		p.lastLine, p.lastDone = now, done
		fmt.Fprintf(p.out, "%s %s of %s, %s, %.0f MB/s\n", p.what, formatCount(done), formatCount(p.total),
			formatSize(bytes), rate)
	}
}

// finish removes the bar.
func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
