// Package compare proves that two logs hold the same batches.
//
// # What
//
// A Source yields the record batches of one partition in order: Dir from the .log files of a partition directory, Topic
// from a cluster by Fetch requests. Compare walks two of them side by side and reports either that every byte of every
// batch in their common range is equal, with a digest, or the first difference: its offset, the field and both values.
//
// The package shares no code with the packages that write a mirror, and fetches with a client that is not ours: a proof
// that used the code under test would share its mistakes.
//
// # Layout
//
// Where a batch's fields lie is the table in batch.go. Segment boundaries mean nothing here: the batches of all .log
// files are one sequence.
//
// # Invariants
//
// A batch is handed out only when its length is plausible, its magic is 2 and its CRC-32C holds. Offsets rise; gaps are
// allowed, as compaction makes them.
//
// # Concurrency
//
// A Source belongs to one goroutine. A Batch's bytes are valid until the Source's next Next.
//
// # Crash contract
//
// Nothing is written. A directory should not be written to while it is read: of a segment that grows or goes meanwhile
// the reading may end early or with an error.
package compare
