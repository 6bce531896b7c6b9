// Package tidy holds the rules of the house as tests over the repository's own source.
//
// # What
//
// Which package may import which, how long files, functions and lines may be, how exported symbols and packages are
// documented, and what must not appear in a source file. CONTRIBUTING.md states the rules for people; these tests are
// what counts. ./... does not match a folder that begins with a dot, so they run as go test ./.ci/tidy.
package tidy
