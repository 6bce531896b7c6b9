// Command dumplog writes testdata/dumplog: what kafka-dump-log 4.3.1 prints of the files that package dumpcases
// makes.
//
// # What
//
// DumpAll.java runs the tool once for each command line, thousands of times in one JVM. This command compiles it with
// javac against the pinned Kafka, runs it and keeps what it printed:
//
//	go run ./bench/kafka/dumplog -out testdata/dumplog
//
// # Layout
//
// GROUP.txt holds a group's runs as text: the command line behind "$ ", stdout, the exit code behind "=> ", stderr.
// hashes.txt has a line for each other group: its name, the number of its runs, and the SHA-256 of the same text.
// -texts FOLDER keeps the text of those, too, to see what differs. manifest.json names Kafka, Java and the command.
//
// # Invariants
//
// The text does not depend on where the files were.
//
// # Concurrency
//
// One JVM at a time.
//
// # Crash contract
//
// None: an interrupted run is started again.
package main
