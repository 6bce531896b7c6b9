// Command protocol writes testdata/protocol: messages and records that Kafka 4.3.1 has no classes for, encoded by
// Kafka's own protocol types from the tables of Cluster Mirroring (KIP-1279), and records of its metadata log.
//
// # What
//
// WriteGolden.java builds schemas of org.apache.kafka.common.protocol.types and writes one example of each message.
// This command compiles it with javac against the pinned Kafka and runs it:
//
//	go run ./bench/kafka/protocol -out testdata/protocol
//
// # Layout
//
// messages.txt has a line for each message: its name, a blank, its bytes in hexadecimal. A name with a slash and a
// number is of that version, others of version 0. manifest.json names Kafka, Java and the command.
package main
