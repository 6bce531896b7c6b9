package admin

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A Selection names topics one by one and by patterns.
type Selection struct {
	Names    []string // in the order given
	Patterns []string // RE2, which match a whole name
	compiled []*regexp.Regexp
}

// topicName is what Kafka allows as a topic's name. Kafka: Topic.validate.
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// ParseSelection reads a comma-separated list. What could be a topic's name is one; anything else is a pattern.
//
// ErrConfig for a pattern that RE2 does not take, and for a brace left open: a comma always separates, so {1,3} cannot
// be written.
func ParseSelection(list string) (Selection, error) {
	var s Selection
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		if topicName.MatchString(item) && item != "." && item != ".." {
			if !slices.Contains(s.Names, item) {
				s.Names = append(s.Names, item)
			}
			continue
		}
		if strings.Count(item, "{") != strings.Count(item, "}") {
			return Selection{}, fmt.Errorf("%w: %q is not a pattern: a comma separates topics, so {m,n} cannot be written",
				ErrConfig, item)
		}
		re, err := regexp.Compile("^(?:" + item + ")$")
		if err != nil {
			return Selection{}, fmt.Errorf("%w: %q is neither a topic's name nor an RE2 pattern: %w", ErrConfig, item,
				patternError(err))
		}
		if !slices.Contains(s.Patterns, item) {
			s.Patterns, s.compiled = append(s.Patterns, item), append(s.compiled, re)
		}
	}
	return s, nil
}

// patternError leaves out of RE2's words the expression, which holds what was put around the pattern.
func patternError(err error) error {
	text, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "error parsing regexp: "), ": `")
	return fmt.Errorf("%s", text)
}

// Empty tells whether nothing is selected.
func (s Selection) Empty() bool { return len(s.Names)+len(s.Patterns) == 0 }

// Matches tells whether a topic is named, or matched by a pattern.
func (s Selection) Matches(topic string) bool {
	return slices.Contains(s.Names, topic) || s.MatchesPattern(topic)
}

// MatchesPattern tells whether a pattern matches a topic.
func (s Selection) MatchesPattern(topic string) bool {
	return slices.ContainsFunc(s.compiled, func(re *regexp.Regexp) bool { return re.MatchString(topic) })
}

// All returns names and patterns.
func (s Selection) All() []string { return slices.Concat(s.Names, s.Patterns) }

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
