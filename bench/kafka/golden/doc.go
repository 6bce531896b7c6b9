// Command golden writes testdata/golden: whole log directories made by a real Kafka, with what kafka-dump-log says of
// their files.
//
// # What
//
// Tests compare our code with these directories; our code never writes them. They are made anew by
//
//	go run ./bench/kafka/golden -out testdata/golden
//
// # Layout
//
// testdata/golden/<image>/ holds manifest.json (Kafka and Java version, settings, time, topics and what each shows),
// logdir/ (a broker's log.dirs entry: checkpoints, meta.properties, partition directories) and dump/<partition>/ with
// kafka-dump-log's stdout for each file (<file>.txt; <file>.data.txt with keys and values). stderr.<kind>.txt holds
// the tool's reports on all files of a kind.
//
// # Invariants
//
// Segments and indexes are a few kB: internal.segment.bytes and segment.index.bytes are set small. A killed image has
// the preallocated index files that a broker leaves behind.
//
// # Concurrency
//
// One goroutine drives one broker at a time.
//
// # Crash contract
//
// None: an interrupted run is started again, and replaces what it wrote.
package main
