package replicator

import "testing"

func TestTopicFilter_MatchesWholeNamesAndExcludeWins(t *testing.T) {
	for name, c := range map[string]struct {
		include, exclude []string
		yes, no          []string
	}{
		"names": {
			include: []string{"payments"},
			yes:     []string{"payments"}, no: []string{"payments-old", "my-payments", ""},
		},
		"expressions": {
			include: []string{"orders-.*"}, exclude: []string{"orders-internal"},
			yes: []string{"orders-us", "orders-"}, no: []string{"orders", "orders-internal", "x-orders-us"},
		},
		"a name and an expression": {
			include: []string{"payments", "orders-.*"},
			yes:     []string{"payments", "orders-eu"}, no: []string{"logs-app"},
		},
		"alternatives stay whole": {
			include: []string{"a|b.*"}, yes: []string{"a", "b", "bc"}, no: []string{"ab", "ca"},
		},
		"internal topics stay out": {
			include: []string{".*"}, exclude: []string{"__.*"},
			yes: []string{"a", "_a"}, no: []string{"__consumer_offsets"},
		},
		"the agent's own topics never pass": {
			include: []string{".*", "__mirror_state"},
			yes:     []string{"__consumer_offsets"}, no: []string{"__mirror_state", "__cluster_metadata"},
		},
		"names that are no topics never pass": {
			include: []string{".*"}, no: []string{".", "..", "../x", "a/b", "a b"},
		},
		"nothing is included by default": {no: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := newTopicFilter(c.include, c.exclude)
			if err != nil {
				t.Fatal(err)
			}
			for _, topic := range c.yes {
				if !f.match(topic) {
					t.Errorf("%q is not mirrored", topic)
				}
			}
			for _, topic := range c.no {
				if f.match(topic) {
					t.Errorf("%q is mirrored", topic)
				}
			}
		})
	}
}

func TestTopicFilter_RefusesWhatIsNoExpression(t *testing.T) {
	if _, err := newTopicFilter([]string{"orders-("}, nil); err == nil {
		t.Error("an open parenthesis was accepted")
	}
}
