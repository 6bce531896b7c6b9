// Package dump prints the files of a partition directory as kafka-dump-log of Kafka 4.3.1 prints them.
//
// # What
//
// [Parse] reads the command line, [Run] prints. What is printed on stdout, the reports on stderr that follow, and the
// exit status are Kafka's byte for byte as long as Kafka's tool runs, for .log, .checkpoint, .index, .timeindex,
// .txnindex and .snapshot files; any other name is ignored in Kafka's words. Beyond Kafka's:
// --mirror-state-decoder, the content of MIRROR_PID_RESET records, --continue, and --max-decompressed-bytes.
//
// # Layout
//
// run.go takes one file after another. log.go walks a log's batches, record.go and legacy.go read their records,
// unpack.go and unpackahead.go decompress, recordline.go and control.go print. index.go, timeindex.go, txnindex.go and
// snapshot.go are the other files, report.go is what follows on stderr. decoder.go and those after it make text of keys
// and values: schema.go reads the tables of record fields, which stand in the tables_*.go files, and decode.go makes
// JSON of bytes by them. javatext.go and exception.go are what Kafka's output owes to Java.
//
// # Invariants
//
// Nothing is written, created or locked. Memory does not grow with a file's size: a batch at a time is held, and
// for the report on gaps a few bytes each. Where Kafka's tool would end with an exception, what it would have
// printed until there is printed, then the exception's first line on stderr, and the exit code is 1. With
// --continue the exception is reported and the next record batch, or the next file, follows.
//
// # Concurrency
//
// One goroutine reads and prints; another one decompresses the next batch meanwhile. A [Dumper] is used once.
//
// # Crash contract
//
// None is needed: files are only read. One that another process cuts meanwhile is an error, never a signal.
package dump
