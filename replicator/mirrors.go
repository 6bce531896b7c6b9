package replicator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
)

// keyDeleting marks a mirror whose states are still to be forgotten: its configuration is gone already.
const keyDeleting = "mirror.deleting"

// notOfSource are keys of a mirror's resource that say nothing about its source.
var notOfSource = map[string]bool{keyDeleting: true}

// openMirrors returns the configurations of all mirrors, those that requests made included, and finishes deletions
// that a crash cut short.
func (a *Agent) openMirrors() ([]MirrorConfig, error) {
	var configs []MirrorConfig
	for i := range a.cfg.Mirrors {
		name := a.cfg.Mirrors[i].Name
		if a.created(name) {
			return nil, fmt.Errorf("%w: mirror %s is declared, and a request created one of that name before: take it out "+
				"of mirrors, start the agent and delete the other (segmirror mirrors --delete --mirror %s), or declare it "+
				"under another name", ErrConfig, name, name)
		}
		cfg, err := a.mirrorConfig(name)
		if err != nil {
			return nil, err
		}
		configs = append(configs, cfg)
	}
	for _, name := range a.metadata.names(resourceMirror) {
		if _, deleting := a.metadata.value(resource{kind: resourceMirror, name: name}, keyDeleting); deleting {
			if err := a.forget(name); err != nil {
				return nil, err
			}
		}
		if !a.created(name) {
			continue
		}
		cfg, err := a.mirrorConfig(name)
		if err != nil { // it was good when it was stored: what changed is this program, or a file it names
			a.logger.Error("a mirror's configuration cannot be used any more: it rests until it is altered",
				slog.String("mirror", name), slog.Any("err", err))
		}
		configs = append(configs, cfg)
	}
	return configs, nil
}

// allMirrors returns the mirrors in order of name. Any goroutine.
func (a *Agent) allMirrors() []*mirror {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.SortedFunc(maps.Values(a.mirrors), func(x, y *mirror) int { return cmp.Compare(x.name, y.name) })
}

// mirror returns the mirror of a name, nil if there is none. Any goroutine.
func (a *Agent) mirror(name string) *mirror {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mirrors[name]
}

// startMirrors runs the mirrors that exist, and lets new ones run, until ctx is done; false when that was done before.
func (a *Agent) startMirrors(ctx context.Context, work *sync.WaitGroup) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ran {
		return false
	}
	a.ran, a.running, a.work = true, ctx, work
	for _, m := range a.mirrors {
		work.Go(func() { m.run(ctx) })
	}
	return true
}

var errNotRunning = errors.New("the agent is closing")

// addMirror makes a new mirror one that runs.
func (a *Agent) addMirror(m *mirror) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ran && a.running == nil {
		return errNotRunning
	}
	a.mirrors[m.name] = m
	if a.running != nil {
		ctx := a.running
		a.work.Go(func() { m.run(ctx) })
	}
	return nil
}

// removeMirror ends a mirror and returns when it touches no log any more.
func (a *Agent) removeMirror(m *mirror) {
	a.mu.Lock()
	delete(a.mirrors, m.name)
	ran := a.ran
	a.mu.Unlock()
	m.quit()
	if ran {
		<-m.ended
	}
}

// reconsider tells the mirrors concerned that what is stored of a resource changed.
func (a *Agent) reconsider(r resource) {
	switch r.kind {
	case resourceMirror:
		if m := a.mirror(r.name); m != nil {
			m.look()
		}
	case resourceTopic:
		for _, m := range a.allMirrors() {
			m.look()
		}
	}
}
