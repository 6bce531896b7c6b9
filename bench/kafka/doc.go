// Package kafka starts a real Apache Kafka for tests, golden directories and comparisons.
//
// # What
//
// [Install] resolves the pinned pom.xml with Maven into the user's cache directory (once per machine). [Start] formats
// and starts one or several KRaft brokers on free loopback ports: node 1 is controller and broker, the others are
// brokers. A [Cluster] creates topics, moves leaders, restarts, pauses and kills brokers, and hands out franz-go
// clients; [Dist] runs Kafka's own command-line tools. [Producers] keep writing while a test does something else.
//
// # Layout
//
// One directory per broker: node-N/server.properties, log4j2.properties, server.log (Kafka's log), out.log (stdout
// and stderr of the JVM) and its log dirs data-0, data-1, ...
//
// # Invariants
//
// Everything listens on 127.0.0.1 only, below the ephemeral port range, so that no client's outgoing connection can
// take the port of a broker that is being restarted. Processes are ended by their own id and never by name. They die
// with the process that started them.
//
// # Concurrency
//
// A machine-wide lock file lets one test process at a time have brokers running; within it at most [MaxClusters]
// clusters and [MaxBrokers] brokers. Methods of Cluster may be called from any goroutine; those of one Broker by one
// at a time.
//
// # Crash contract
//
// None is needed: directories are thrown away. An interrupted installation leaves a temporary folder beside the cache
// entry and no entry.
package kafka
