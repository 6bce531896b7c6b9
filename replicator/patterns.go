package replicator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The keys of a mirror's patterns, and those of the overlay that requests lay over a declared mirror's.
const (
	keyBootstrap = "bootstrap.servers"
	keyInclude   = "mirror.topics.include"
	keyExclude   = "mirror.topics.exclude"

	overlayAdded   = ".added"
	overlayRemoved = ".removed"
)

// patterns are what a mirror looks for at its source. Neither list holds an entry twice.
type patterns struct{ include, exclude []string }

func patternsOf(cfg *MirrorConfig) patterns {
	return patterns{include: cfg.TopicsInclude, exclude: cfg.TopicsExclude}
}

// start returns p after a request to start what include names and to leave out what exclude names: each joins its list
// and leaves the other.
func (p patterns) start(include, exclude []string) patterns {
	return patterns{
		include: joined(without(p.include, exclude), include),
		exclude: joined(without(p.exclude, include), exclude),
	}
}

// stop returns p after a request to stop what list names: an entry of include is taken out, any other is excluded.
func (p patterns) stop(list []string) patterns {
	out := patterns{include: without(p.include, list), exclude: p.exclude}
	for _, e := range list {
		if !slices.Contains(p.include, e) {
			out.exclude = joined(out.exclude, []string{e})
		}
	}
	return out
}

func (p patterns) equal(o patterns) bool {
	return slices.Equal(p.include, o.include) && slices.Equal(p.exclude, o.exclude)
}

func joined(list, more []string) []string {
	out := slices.Clone(list)
	for _, e := range more {
		if !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	return out
}

func without(list, gone []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(e string) bool { return slices.Contains(gone, e) })
}

// checkPatterns refuses entries of a request that a list in a configuration could not hold.
func checkPatterns(lists ...[]string) error {
	for _, list := range lists {
		for _, e := range list {
			if strings.Contains(e, ",") || strings.TrimSpace(e) != e || e == "" {
				return fmt.Errorf("%q: a pattern is not empty and holds no comma and no space at its ends", e)
			}
		}
		if _, err := newPattern(list); err != nil {
			return err
		}
	}
	return nil
}

// records returns what stores p as the patterns of a mirror: the lists themselves for one that was created, for a
// declared one what differs from the lists that were declared.
func (p patterns) records(mirror string, declared *MirrorConfig) []MetadataRecord {
	r := resource{kind: resourceMirror, name: mirror}
	var out []MetadataRecord
	set := func(key string, list []string) {
		value := strings.Join(list, ",")
		out = append(out, configRecord(r, key, &value))
	}
	if declared == nil {
		set(keyInclude, p.include)
		set(keyExclude, p.exclude)
		return out
	}
	overlay := func(key string, was, is []string) {
		for ending, list := range map[string][]string{overlayAdded: without(is, was), overlayRemoved: without(was, is)} {
			if len(list) == 0 {
				out = append(out, configRecord(r, key+ending, nil))
				continue
			}
			set(key+ending, list)
		}
	}
	overlay(keyInclude, declared.TopicsInclude, p.include)
	overlay(keyExclude, declared.TopicsExclude, p.exclude)
	return out
}

// overlaid returns the patterns of a declared mirror with what requests changed about them.
func overlaid(declared *MirrorConfig, overlay map[string]string) patterns {
	lay := func(key string, list []string) []string {
		return joined(without(list, splitList(overlay[key+overlayRemoved])), splitList(overlay[key+overlayAdded]))
	}
	return patterns{include: lay(keyInclude, declared.TopicsInclude), exclude: lay(keyExclude, declared.TopicsExclude)}
}

// mirrorConfig returns the configuration a mirror has now: what was declared, under the overlay of its patterns, or
// what it was created and altered with. Errors wrap ErrConfig. Any goroutine.
func (a *Agent) mirrorConfig(mirror string) (MirrorConfig, error) {
	stored := a.metadata.config(resource{kind: resourceMirror, name: mirror})
	if declared := a.declared[mirror]; declared != nil {
		cfg := *declared
		p := overlaid(declared, stored)
		cfg.TopicsInclude, cfg.TopicsExclude = p.include, p.exclude
		return cfg, nil
	}
	return a.cfg.mirror(mirror, stored)
}

// mirror reads the configuration of a mirror that requests made, over the defaults that agent.properties gives for all
// mirrors. Errors wrap ErrConfig; one of a key that does not exist wraps errUnknownKey too.
func (c *Config) mirror(name string, props map[string]string) (MirrorConfig, error) {
	own := maps.Clone(props)
	maps.DeleteFunc(own, func(key, _ string) bool { return notOfSource[key] })
	for _, key := range slices.Sorted(maps.Keys(own)) {
		if _, ok := mirrorKeys[key]; !ok && !isClientKey(key) {
			return MirrorConfig{Name: name}, fmt.Errorf("%w: %w: %s", ErrConfig, errUnknownKey, key)
		}
	}
	m, _, err := parseMirror(name, c.mirrorDefaults, own)
	c.chooseEpochPolicy(&m)
	if err == nil {
		err = m.Validate()
	}
	return m, err
}
