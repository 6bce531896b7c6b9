package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The columns of a Kafka tool's help: 38 characters of the option, two spaces, 38 of its description. Lines that go on
// are indented by two.
const (
	helpColumn = 38
	helpGap    = 2
	helpIndent = "  "
)

// help returns a tool's help as Kafka's tools print theirs, sorted by option, and what is to say beyond it.
func (t tool) help() string {
	var b strings.Builder
	fmt.Fprintln(&b, t.intro)
	helpRow(&b, "Option", "Description")
	helpRow(&b, "------", "-----------")
	options := slices.Clone(t.options)
	slices.SortFunc(options, func(x, y toolOption) int { return cmp.Compare(x.flag.Names()[0], y.flag.Names()[0]) })
	for _, o := range options {
		option := "--" + o.flag.Names()[0]
		if o.value != "" {
			option += " " + o.value
		}
		left, right := wrap(option), wrap(o.about)
		for i := range max(len(left), len(right)) {
			helpRow(&b, line(left, i), line(right, i))
		}
	}
	fmt.Fprintf(&b, "\nsegmirror %s: %s\n\n%s\n", t.name, t.usage, t.more)
	return b.String()
}

func helpRow(b *strings.Builder, option, about string) {
	row := fmt.Sprintf("%-*s%s", helpColumn+helpGap, option, about)
	fmt.Fprintln(b, strings.TrimRight(row, " "))
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// wrap breaks text at spaces into lines that fit a column.
func wrap(text string) []string {
	var lines []string
	current := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case current == "":
			current = word
		case len(current)+1+len(word) <= helpColumn:
			current += " " + word
		default:
			lines = append(lines, current)
			current = helpIndent + word
		}
	}
	return append(lines, current)
}
