package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"segmirror/admin"
	"segmirror/fetchwire"
)

const configsMore = `Entity types are mirrors (every mirror-level key; a mirror that agent.properties declares is
changed there), brokers (mirror.replication.throttled.rate of an agent, by its node.id) and topics
(mirror.replication.throttled.replicas). With a stock Kafka broker, brokers and topics work as
kafka-configs.sh does; quotas of clients and users are set with that tool, at the source.

Any error exits 1, whatever its kind, as Kafka's tools do. Values of secrets are never printed.

Examples:
   segmirror configs --bootstrap-server :9094 --entity-type mirrors --entity-name dr --describe
   segmirror configs --bootstrap-server :9094 --entity-type mirrors --entity-name dr --alter \
     --add-config 'bootstrap.servers=[a:9092,b:9092]'
   segmirror configs --bootstrap-server :9094 --entity-type brokers --entity-name 4 --alter \
     --add-config mirror.replication.throttled.rate=100000000
   segmirror configs --bootstrap-server :9094 --entity-type topics --entity-name orders --alter \
     --add-config 'mirror.replication.throttled.replicas=*'`

// entityTypes are what may be described and altered, with what the shorter flags for them are called.
var entityTypes = []struct {
	name, flag string
	resource   int8
}{
	{"topics", "topic", fetchwire.ResourceTopic},
	{"brokers", "broker", fetchwire.ResourceBroker},
	{"mirrors", "mirror", fetchwire.ResourceMirror},
}

func configsCommand() *cli.Command {
	options := append(connectionOptions("The Kafka servers to connect to."),
		textOption("add-config", "k1=v1,k2=[v1,v2],...", "Key Value pairs of configs to add. "+
			"Square brackets can be used to group values which contain commas: 'k1=v1, k2=[v1,v2,v2],k3=v3'."),
		textOption("add-config-file", "property file", "Path to a properties file with configs to add."),
		switchOption("all", "List all configs for the given entity, including static configs if available."),
		switchOption("alter", "Alter the configuration for the entity."),
		textOption("delete-config", "k1,k2,...", "config keys to remove 'k1,k2'"),
		switchOption("describe", "List configs for the given entity."),
		switchOption("entity-default", "Default entity name for brokers"),
		textOption("entity-name", "name", "Name of entity (mirror name/broker id/topic name)"),
		textOption("entity-type", "type", "Type of entity (mirrors/brokers/topics)"),
		switchOption("json", "With --describe: one JSON document"),
		textOption("topic", "name", "The topic's name."),
		textOption("broker", "id", "The broker's ID."),
		switchOption("broker-defaults", "The config defaults for all brokers."),
		textOption("mirror", "name", "The mirror's name."))
	return tool{
		name:  "configs",
		usage: "describe and alter the configuration of mirrors, brokers and topics, as kafka-configs.sh does",
		intro: "This tool helps to manipulate and describe entity config for a mirror, broker or topic",
		more:  configsMore, options: options, run: runConfigs,
	}.command()
}

// configsCall is one run of the command.
type configsCall struct {
	*cli.Context
	client   *admin.Client
	kind     string // mirrors, brokers or topics
	resource int8
	name     string
	named    bool // by a name, or as the default; else all of the kind
}

// entity returns kind and name as Kafka's messages say them: topic orders.
func (c configsCall) entity() string { return c.singular() + " " + c.name }

func (c configsCall) singular() string { return strings.TrimSuffix(c.kind, "s") }

func runConfigs(c *cli.Context) error {
	if c.Bool("alter") == c.Bool("describe") {
		return kafkaSays("Command must include exactly one action: --describe, --alter")
	}
	if c.Bool("describe") {
		for _, option := range []string{"add-config", "add-config-file", "delete-config"} {
			if text(c, option) != "" {
				return invalidWith("describe", option)
			}
		}
	}
	call := configsCall{Context: c}
	if err := errors.Join(call.readEntity()); err != nil {
		return err
	}
	if !hasConnection(c) {
		return kafkaSays("--bootstrap-server must be specified")
	}
	if c.Bool("json") && !c.Bool("describe") {
		return invalidWith("alter", "json")
	}
	if err := call.checkEntity(); err != nil {
		return err
	}
	var ops []admin.ConfigOp
	if c.Bool("alter") {
		var err error
		if ops, err = readOps(c); err != nil {
			return err
		}
	}
	var err error
	if call.client, err = connectAdmin(c); err != nil {
		return err
	}
	if c.Bool("alter") {
		err = call.alter(ops)
	} else {
		err = call.describe()
	}
	return errors.Join(explain(err), call.client.Close())
}

// readEntity takes kind and name from --entity-type and its companions, or from a flag of one kind.
func (c *configsCall) readEntity() error {
	var kinds []string
	general := text(c.Context, "entity-name") != "" || c.Bool("entity-default")
	if kind := text(c.Context, "entity-type"); kind != "" {
		kinds, general = append(kinds, kind), true
	}
	c.name, c.named = text(c.Context, "entity-name"), general && c.hasName()
	specific := false
	for _, t := range entityTypes {
		if name := text(c.Context, t.flag); name != "" {
			kinds, specific = append(kinds, t.name), true
			c.name, c.named = name, true
		}
	}
	if c.Bool("broker-defaults") {
		kinds, specific = append(kinds, "brokers"), true
		c.name, c.named = "", true
	}
	switch {
	case len(kinds) == 0:
		return kafkaSays("At least one entity type must be specified")
	case general && specific:
		return kafkaSays("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
	case len(kinds) > 1:
		return kafkaSays("Only one entity type may be specified, not %s", strings.Join(kinds, " and "))
	}
	c.kind = kinds[0]
	for _, t := range entityTypes {
		if t.name == c.kind {
			c.resource = t.resource
			return nil
		}
	}
	err := kafkaSays("Invalid entity type %s, the entity type must be one of topics, brokers, mirrors with a "+
		"--bootstrap-server argument", c.kind)
	if slices.Contains([]string{"clients", "users", "ips", "client-metrics", "groups", "broker-loggers"}, c.kind) {
		err = fmt.Errorf("%w; use kafka-configs.sh for %s of a Kafka cluster", err, c.kind)
	}
	return err
}

func (c *configsCall) hasName() bool {
	return text(c.Context, "entity-name") != "" || c.Bool("entity-default")
}

// checkEntity wants a name where one is needed, and one that can be.
func (c *configsCall) checkEntity() error {
	byDefault := c.named && c.name == ""
	switch {
	case c.kind == "brokers" && c.name != "":
		if _, err := strconv.ParseInt(c.name, 10, 32); err != nil {
			return kafkaSays("The entity name for brokers must be a valid integer broker id, but it is: %s", c.name)
		}
	case c.kind == "brokers" && !c.named && c.Bool("alter"):
		return kafkaSays("An entity-name or default entity must be specified with --alter of users, clients, brokers or ips")
	case c.kind != "brokers" && byDefault && c.Bool("describe"):
		return kafkaSays("--entity-default must not be specified with --describe of %s", c.kind)
	case c.kind != "brokers" && c.name == "" && c.Bool("alter"):
		return kafkaSays("An entity name must be specified with --alter of %s", c.kind)
	}
	return nil
}

func (c configsCall) alter(ops []admin.ConfigOp) error {
	change := admin.ConfigChange{Resource: admin.ConfigResource{Type: c.resource, Name: c.name}, Ops: ops}
	results, err := c.client.IncrementalAlterConfigs(c.Context.Context, []admin.ConfigChange{change},
		admin.AlterConfigsOptions{})
	if err != nil {
		return err
	}
	if err := results[0].Err; err != nil {
		return fmt.Errorf("%s: %w", c.entity(), err)
	}
	if c.name == "" {
		fmt.Fprintf(c.App.Writer, "Completed updating default config for %s in the cluster.\n", c.kind)
		return nil
	}
	fmt.Fprintf(c.App.Writer, "Completed updating config for %s.\n", c.entity())
	return nil
}
