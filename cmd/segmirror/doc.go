// Command segmirror mirrors Kafka partitions at the level of their segment files.
//
// # What
//
// One thin file per command: it reads flags, calls the packages that do the work and prints. segmirror help lists the
// commands, segmirror help COMMAND says what one does.
//
// # Exit codes
//
//	0  done
//	1  a finding or a difference; any error of the commands that carry a Kafka tool's name (mirrors, configs)
//	2  wrong usage or configuration
//	3  could not: I/O, network, interrupted
//
// An error is one line on stderr. The first Ctrl-C (or SIGTERM) stops cleanly, the second ends the process at once.
package main
