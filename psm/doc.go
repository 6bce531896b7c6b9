// Package psm keeps the producer state of one partition: what each producer wrote last, which transactions
// are open, and the snapshot files of that state.
//
// # What
//
// A Manager is fed every batch of a log in order (Prepare) and answers which transactions are open, where the
// log's stable part ends, and what a broker that takes the partition over has to know of its producers. It
// follows Kafka's rules for data that arrives by replication: sequences are not checked, and an epoch that
// goes backwards is counted, not refused. Only the newest batch of a producer is kept, as in a snapshot file,
// because nothing here ever validates what a client appends.
//
// A MIRROR_PID_RESET control record (type 7, without a producer id) is a barrier: it removes every producer and
// every open transaction that came before it, at its place in the batch order, on append and on replay alike.
//
// # Layout
//
// O.snapshot, O in 20 digits, is the state as of offset O (exclusive), big-endian:
//
//	pos size field
//	  0    2 version   int16   1
//	  2    4 crc       uint32  CRC-32C of 6..end
//	  6    4 count     int32
//	 10   46 each      entry, see snapshot.go
//
// # Invariants
//
//   - Prepare changes the live state and notes how to take it back; Rollback takes back everything since the
//     last Commit, a refused batch included nothing. In the steady state neither allocates.
//   - Open transactions are linked in the order of their first offsets, which is the order they opened in.
//   - Expiry counts from the newest timestamp of the log, never from this host's clock.
//
// A producer takes 64 bytes and its place in a map, about 110 MB for a million of them; in a snapshot it has 46 bytes.
//
// # Concurrency
//
// None: a Manager belongs to the goroutine that owns its log. Functions on files may be called by anybody.
//
// # Crash contract
//
// A snapshot is written beside its name and renamed; it is a cache. One that does not decode is removed and
// the next older one is used, with the log behind it replayed.
package psm
