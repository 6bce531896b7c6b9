// Package dumpcases lays out files, most of them damaged, and says how to run kafka-dump-log on them. The real tool's
// answers are in testdata/dumplog; the tests of package dump compare with them.
//
// # What
//
// [Build] writes the files below a folder and returns the runs in groups. [Result] makes one text of what a run
// printed, in which nothing depends on where the folder is.
//
// # Layout
//
// One folder a group. Files of the golden images are copied where a group damages them.
//
// # Invariants
//
// The same files are made every time: random numbers are seeded, and nothing is compressed by a library whose
// output may change.
//
// # Concurrency
//
// None.
//
// # Crash contract
//
// None: the folder is thrown away.
package dumpcases
