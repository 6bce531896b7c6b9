package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"segmirror/admin"
)

const (
	caughtUpPoll = 200 * time.Millisecond
	caughtUpLine = 2 * time.Second // between lines elsewhere than on a terminal
)

// awaitCaughtUp returns when no partition of topics lags. A partition that cannot catch up is an error, and nothing is
// stopped.
func (c mirrorsCall) awaitCaughtUp(topics []string) error {
	shown := waitLine{c: c}
	defer shown.end()
	ticker := time.NewTicker(caughtUpPoll)
	defer ticker.Stop()
	for {
		described, err := c.described()
		if c.Context.Context.Err() != nil {
			return fmt.Errorf("nothing was stopped: interrupted while waiting for mirror %s to catch up: %w", c.mirror,
				context.Cause(c.Context.Context))
		}
		if err != nil {
			return err
		}
		lag, unknown, err := lagOf(described, topics)
		if err != nil {
			return err
		}
		if lag == 0 && unknown == 0 {
			return nil
		}
		shown.show(lag, unknown)
		select {
		case <-ticker.C:
		case <-c.Context.Context.Done(): // seen above
		}
	}
}

// lagOf adds up what partitions lag and counts those whose lag is not known yet. Stopped ones count as done.
func lagOf(m *admin.MirrorDescription, topics []string) (lag int64, unknown int, err error) {
	var errs []error
	left := slices.Clone(topics)
	for _, t := range m.Topics {
		i := slices.Index(left, t.Name)
		if i < 0 {
			continue
		}
		left = slices.Delete(left, i, i+1)
		for _, p := range t.Partitions {
			switch {
			case p.State == admin.StateStopped:
			case p.State == admin.StateMirroring && p.Lag >= 0:
				lag += p.Lag
			case p.State == admin.StateMirroring, p.State == admin.StatePreparing, p.State == admin.StateUnknown:
				unknown++
			default:
				errs = append(errs, fmt.Errorf("nothing was stopped: %s-%d is %s and does not catch up: %s; "+
					"leave out --when-caught-up to stop it as it is", t.Name, p.Partition, p.State,
					oneLineText(orElse(p.Cause, "it fetches nothing"))))
			}
		}
	}
	if len(left) > 0 {
		errs = append(errs, fmt.Errorf("nothing was stopped: mirror %s has no topic %s", m.Name, strings.Join(left, ", ")))
	}
	return lag, unknown, errors.Join(errs...)
}

func orElse(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

// waitLine shows how far the waiting has come: one line that changes on a terminal, plain lines elsewhere.
type waitLine struct {
	c     mirrorsCall
	words string
	last  time.Time
}

func (w *waitLine) show(lag int64, unknown int) {
	w.words = fmt.Sprintf("waiting for mirror %s to catch up: %s record(s) behind", w.c.mirror, formatCount(lag))
	if unknown > 0 {
		w.words += fmt.Sprintf(", %d partition(s) not known yet", unknown)
	}
	if isTerminal(w.c.App.ErrWriter) {
		fmt.Fprintf(w.c.App.ErrWriter, "\r\033[K%s", w.words)
		return
	}
	if now := time.Now(); now.Sub(w.last) >= caughtUpLine {
		w.last = now
		fmt.Fprintln(w.c.App.ErrWriter, w.words)
	}
}

// end clears the line on a terminal.
func (w *waitLine) end() {
	if w.words != "" && isTerminal(w.c.App.ErrWriter) {
		fmt.Fprint(w.c.App.ErrWriter, "\r\033[K")
	}
}
