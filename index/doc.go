// Package index reads and writes the three index files that stand beside a segment's .log file.
//
// # What
//
// OffsetIndex (.index) finds the batch that holds an offset, TimeIndex (.timeindex) the offset from which
// on records are as new as a timestamp, and TransactionIndex (.txnindex) the aborted transactions whose
// marker lies in the segment. The package knows offsets, positions and timestamps; it knows nothing of
// batches. All three are caches: the .log file is the truth, and whoever doubts an index rebuilds it.
//
// # Layout
//
// Big-endian entries back to back, no header and no checksum. B is the segment's base offset.
//
//	.index      8 bytes   relativeOffset int32 (offset-B), position int32
//	.timeindex 12 bytes   timestamp int64 (ms), relativeOffset int32
//	.txnindex  34 bytes   version int16 (0), producerId, firstOffset, lastOffset, lastStableOffset int64
//
// An offset entry says: the batch that starts at position has offset as its LAST offset. A time entry says:
// up to and including the batch that ends at offset, timestamp is the largest, and that batch holds it.
//
// # Invariants
//
//   - A file is exactly as long as its entries: nothing is preallocated, so there is no zero tail that a
//     broker would take for entries, nothing to trim, and no mapping that could fault on a full disk.
//   - Offsets and positions of .index strictly rise, as do the timestamps of .timeindex and the lastOffsets
//     of .txnindex. Appends that would break this are refused and change nothing.
//   - Appended entries are kept in memory until Write, which puts them into the file with one pwrite.
//   - An index that is not being written holds no descriptor: a lookup opens the file for the one call.
//
// # Concurrency
//
// Append, Write, TruncateTo, Reset, DropLast, Park and Close belong to the one goroutine that owns the
// log. Lookup, At, Entries, Last, Check, Collect and Sync may be called from any goroutine. The owner keeps
// readers away while it truncates; a reader that is there all the same gets an error or an older answer,
// never an entry that was not in the index.
//
// # Crash contract
//
// Nothing is durable before Sync. After a crash a file may be short, torn inside an entry, or hold zeros
// where entries were; opening reports what it can see (ErrCorruptIndex) and Check reports the rest. A caller
// that recovers a segment starts from an empty index (CreateOffset, CreateTime, Reset) and appends anew.
package index
