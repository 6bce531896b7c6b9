package main

import (
	"errors"
	"fmt"
	"strings"

	"segmirror/replicator"
)

// The exit codes of every command.
const (
	exitDone     = 0
	exitFinding  = 1
	exitUsage    = 2
	exitCouldNot = 3
)

var (
	// errUsage marks wrong flags or arguments.
	errUsage = errors.New("usage")
	// errFinding marks a difference or a fault in what was examined, while the examination itself went well.
	errFinding = errors.New("finding")
	// errReported marks a finding of which everything is on stderr already.
	errReported = errors.New("reported")
)

// marked is an error with one of the marks above, which its text does not repeat.
type marked struct {
	mark error
	err  error
}

func (m marked) Error() string   { return m.err.Error() }
func (m marked) Unwrap() []error { return []error{m.mark, m.err} }

func usagef(format string, args ...any) error {
	return marked{mark: errUsage, err: fmt.Errorf(format, args...)}
}

func findingf(format string, args ...any) error {
	return marked{mark: errFinding, err: fmt.Errorf(format, args...)}
}

func exitCode(err error) int {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errTool):
		return exitFinding
	case errors.Is(err, errUsage), errors.Is(err, replicator.ErrConfig):
		return exitUsage
	case errors.Is(err, errFinding):
		return exitFinding
	default:
		return exitCouldNot
	}
}

// oneLine joins the lines of an error that holds several.
func oneLine(err error) string { return oneLineText(err.Error()) }

func oneLineText(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
