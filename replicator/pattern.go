package replicator

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// pattern is a list of names and RE2 expressions, each matched against a whole name. An empty list matches nothing.
type pattern struct {
	literals map[string]bool
	list     []*regexp.Regexp
}

func newPattern(entries []string) (pattern, error) {
	p := pattern{literals: map[string]bool{}}
	for _, e := range entries {
		p.literals[e] = true // also of an expression: a name equals itself even where a dot would match more
		if !strings.ContainsAny(e, `\*+?()[]{}|^$.`) {
			continue
		}
		re, err := regexp.Compile(`^(?:` + e + `)$`)
		if err != nil {
			return pattern{}, fmt.Errorf("%q is neither a name nor an RE2 expression: %w", e, err)
		}
		re.Longest()
		p.list = append(p.list, re)
	}
	return p, nil
}

func (p pattern) match(name string) bool {
	if p.literals[name] {
		return true
	}
	for _, re := range p.list {
		if re.MatchString(name) {
			return true
		}
	}
	return false
}

// plainNames returns the entries that can be names, so that a source can be asked for these by name: it then tells
// a topic we may not describe from one that is not there.
func (p pattern) plainNames() []string {
	var names []string
	for name := range p.literals {
		if legalTopic(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// topicFilter is what a mirror includes and excludes; exclude wins, and the agent's own topics never pass.
type topicFilter struct {
	include, exclude pattern
}

func newTopicFilter(include, exclude []string) (topicFilter, error) {
	in, err := newPattern(include)
	if err != nil {
		return topicFilter{}, fmt.Errorf("mirror.topics.include: %w", err)
	}
	ex, err := newPattern(exclude)
	if err != nil {
		return topicFilter{}, fmt.Errorf("mirror.topics.exclude: %w", err)
	}
	return topicFilter{include: in, exclude: ex}, nil
}

func (f topicFilter) match(topic string) bool {
	if topic == stateTopic || topic == metadataTopic || !legalTopic(topic) {
		return false
	}
	return f.include.match(topic) && !f.exclude.match(topic)
}

// legalTopic guards the file system: a source that names a topic "../x" is not followed.
func legalTopic(topic string) bool {
	return topic != "." && topic != ".." && mirrorName.MatchString(topic)
}
