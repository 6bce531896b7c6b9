// Package segment is partition directories in Kafka's on-disk format.
//
// # What
//
// A LogDir is one entry of log.dirs: its lock, its identity, its checkpoint files. A Log is one partition in it: .log
// files of record batches, their indexes, the leader epochs, the producer state. A mirrored log is written by
// AppendFrom, which reads a socket straight into the mapped tail of the active segment and checks every batch in place.
// What a clean close or a recovery leaves can be opened by a Kafka broker. The package knows files and batches, nothing
// of networks; it reports and never logs.
//
// # Layout
//
//	meta.properties, .lock, .kafka_cleanshutdown             whose directory it is, who has it, how it was left
//	recovery-point-, log-start-, replication-offset-checkpoint   one offset per partition
//	<topic>-<partition>/
//	  B.log B.index B.timeindex B.txnindex                   a segment; B is its base offset in 20 digits
//	  O.snapshot                                             producer state as of offset O
//	  leader-epoch-checkpoint                                epochs of the bytes on disk
//	  source-leader-epoch-checkpoint                         epochs of the source, and whose they are
//	  digests                                                sums by ranges of offsets, to compare two copies
//	  partition.metadata                                     topic id
//
// Batches are in batch.go, index entries in package index, snapshots in package psm, texts in epoch.go and
// checkpoint.go.
//
// # Invariants
//
//   - Base offsets rise strictly: a batch begins above the last offset of the batch before it. Gaps are legal.
//   - Bytes beyond the published end are not the log. They are zeroed, or cut with the file, before an append returns
//     that did not commit them, before a park, a close and a truncation.
//   - The .log is the truth. An offset is never taken from an index without parsing the batch it points to, and the
//     indexes are what a recovery would rebuild, however often the log was opened.
//   - An epoch is in its file when the first batch of it is durable, and until then recovery reads it off that batch;
//     under EpochRebase the source's epoch is in its file before the batch is stamped.
//   - A segment is filled per batch up to segment.bytes; a larger batch stands alone. Its name is the base offset of
//     its first batch. A boundary between segments that leaves a gap is durable before the next segment has bytes.
//   - The recovery point never lies above what was synced, and is lowered in its file before anything is cut.
//
// # Concurrency
//
// One goroutine owns a Log. Offsets, epochs, Read and Slices are for any goroutine; Flush for one beside the owner. The
// end of the log is an atomic that is stored last; the list of segments is immutable and replaced. A truncation
// publishes the lower end, then waits for the leases given out before it. Deleted files stay readable to those who
// hold them. Every touch of a mapping runs in a fault guard: an unreadable page is ErrMapFault.
//
// # Crash contract
//
// After kill -9 or a power cut, OpenLog scans from the segment that holds the recovery point by the rules of append,
// cuts what does not hold, and yields a prefix of what was appended, not shorter than what Flush reported. Segments
// below the recovery point are trusted, but for their last batches. What is cut is copied to CutDir, up to a limit,
// and listed in the RecoveryReport; nothing but unused room goes without being named. Any failed write, sync or map
// poisons the Log (ErrLogFailed): closing and opening it again recovers. ErrNoSpace while room is reserved does not.
//
// Bytes land in the file before they are checked, and the kernel may write them back at any moment. Whole batches that
// are refused, or given back, are zeroed durably before the call returns. A power cut before that can bring one back
// only if recovery has no reason to refuse it: an intact batch that goes on from the end, of a leader epoch above the
// caller's limit. It is then part of the log under its own epoch, which the next fetch names to the source; the source
// says where that epoch ends there, as for any leader that lost records. Closing this window would take a second write
// and sync for every batch.
package segment
