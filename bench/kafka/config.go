package kafka

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Config says what Start starts.
type Config struct {
	Brokers    int               // number of brokers; 0 means 1
	Dir        string            // where the nodes live; empty: a temporary folder that Close removes
	LogDirs    int               // log.dirs entries of each broker; 0 means 1
	Props      map[string]string // server.properties of every broker, over the defaults
	Features   map[string]int    // feature levels given to kafka-storage format, such as transaction.version
	HeapMB     int               // -Xmx of each broker; 0 means 320
	JVMFlags   []string          // more flags for the brokers' JVMs, after the defaults
	Authorizer bool              // StandardAuthorizer, under which everything without an ACL stays allowed
	Listeners  map[string]string // further listeners: name to security protocol; what they need goes into Props
}

func (c Config) brokers() int { return max(c.Brokers, 1) }
func (c Config) logDirs() int { return max(c.LogDirs, 1) }

// jvmFlags keeps a broker small and quick to start rather than fast.
func (c Config) jvmFlags() []string {
	heap := c.HeapMB
	if heap == 0 {
		heap = 320
	}
	return append([]string{
		fmt.Sprintf("-Xmx%dm", heap), "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
		"-XX:-UsePerfData", "-Djava.awt.headless=true",
	}, c.JVMFlags...)
}

// defaultProps suits short-lived brokers on a small machine: few threads, short intervals, no waiting.
func defaultProps() map[string]string {
	return map[string]string{
		"listener.security.protocol.map":                              "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"controller.listener.names":                                   "CONTROLLER",
		"inter.broker.listener.name":                                  "PLAINTEXT",
		"auto.create.topics.enable":                                   "false",
		"num.network.threads":                                         "1",
		"num.io.threads":                                              "2",
		"background.threads":                                          "2",
		"num.recovery.threads.per.data.dir":                           "2",
		"num.partitions":                                              "1",
		"offsets.topic.num.partitions":                                "1",
		"transaction.state.log.num.partitions":                        "1",
		"transaction.state.log.min.isr":                               "1",
		"group.initial.rebalance.delay.ms":                            "0",
		"log.cleaner.threads":                                         "1",
		"log.cleaner.dedupe.buffer.size":                              "2097152",
		"log.cleaner.io.buffer.size":                                  "65536",
		"log.cleaner.backoff.ms":                                      "500",
		"log.initial.task.delay.ms":                                   "1000",
		"log.retention.check.interval.ms":                             "1000",
		"log.segment.delete.delay.ms":                                 "1000",
		"broker.session.timeout.ms":                                   "6000",
		"broker.heartbeat.interval.ms":                                "500",
		"replica.lag.time.max.ms":                                     "10000",
		"leader.imbalance.check.interval.seconds":                     "3600",
		"auto.leader.rebalance.enable":                                "false",
		"controller.quorum.election.timeout.ms":                       "500",
		"controller.quorum.fetch.timeout.ms":                          "10000",
		"transaction.max.timeout.ms":                                  "900000",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms": "10000",
		"metric.reporters":                                            "",
	}
}

// serverProperties renders the properties of broker b.
func (c *Cluster) serverProperties(b *Broker) string {
	p := defaultProps()
	listeners := "PLAINTEXT://" + b.Addr()
	for _, name := range slices.Sorted(maps.Keys(c.cfg.Listeners)) {
		listeners += fmt.Sprintf(",%s://%s", name, b.ListenerAddr(name))
		p["listener.security.protocol.map"] += fmt.Sprintf(",%s:%s", name, c.cfg.Listeners[name])
	}
	p["advertised.listeners"] = listeners
	p["process.roles"] = "broker"
	if b.ID == 1 {
		p["process.roles"] = "broker,controller"
		listeners += fmt.Sprintf(",CONTROLLER://127.0.0.1:%d", c.controllerPort)
	}
	p["listeners"] = listeners
	p["node.id"] = fmt.Sprint(b.ID)
	p["controller.quorum.voters"] = fmt.Sprintf("1@127.0.0.1:%d", c.controllerPort)
	p["log.dirs"] = strings.Join(b.LogDirs, ",")
	rf := fmt.Sprint(min(c.cfg.brokers(), 2))
	p["offsets.topic.replication.factor"] = rf
	p["transaction.state.log.replication.factor"] = rf
	if c.cfg.Authorizer {
		p["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
		p["allow.everyone.if.no.acl.found"] = "true"
	}
	maps.Copy(p, c.cfg.Props)
	var sb strings.Builder
	for _, k := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&sb, "%s=%s\n", k, p[k])
	}
	return sb.String()
}

// log4jProperties sends Kafka's log to the file, with nothing on stdout.
func log4jProperties(file string) string {
	return `status = error
appender.file.type = File
appender.file.name = file
appender.file.fileName = ` + file + `
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
`
}
