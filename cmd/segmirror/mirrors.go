package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"segmirror/admin"
	"segmirror/fetchwire"
)

const mirrorsMore = `A topic in a list is a name if it could be one (letters, digits, '.', '_', '-'), else an RE2
pattern that matches whole names. --start keeps patterns, so that topics made later are found; --stop, --pause
and --resume apply them to the topics the mirror has. What an option asks for is durable when its line
is printed; stopping goes on by itself, --describe shows STOPPING, then STOPPED.

--describe prints why partitions are FAILED to stderr. Any error exits 1, whatever its kind, as
Kafka's tools do. The binary is this command when it is called kafka-mirrors or kafka-mirrors.sh.

Examples:
   segmirror mirrors --bootstrap-server :9094 --create --mirror dr --mirror-config source.properties
   segmirror mirrors --bootstrap-server :9094 --start --mirror dr --topics 'orders-.*' --exclude orders-internal
   segmirror mirrors --agents a:9094,b:9094 --describe --mirror dr
   segmirror mirrors --bootstrap-server :9094 --describe --mirror dr --check
   segmirror mirrors --bootstrap-server :9094 --stop --mirror dr --topics '.*' --when-caught-up`

// The actions of segmirror mirrors, in the order of the complaint about them.
var mirrorActions = []struct {
	name, about string
	run         func(mirrorsCall) error
}{
	{"create", "Create a new cluster mirror from a source cluster.", mirrorsCall.create},
	{"start", "Start mirroring topics matching the given patterns.", mirrorsCall.start},
	{"stop", "Stop mirroring topics matching the given patterns.", mirrorsCall.stop},
	{"delete", "Delete a cluster mirror.", mirrorsCall.delete},
	{"pause", "Pause mirroring for topics matching the given patterns.", mirrorsCall.pause},
	{
		"resume", "Resume mirroring for previously paused topics matching the given patterns.",
		mirrorsCall.resume,
	},
	{"list", "List all cluster mirrors.", mirrorsCall.list},
	{"describe", "Describe a cluster mirror including partition lag and state.", mirrorsCall.describe},
}

func mirrorsCommand() *cli.Command {
	options := append(connectionOptions("REQUIRED: The destination Kafka server to connect to."),
		textOption("exclude", "exclude patterns",
			"Comma-separated list of topic names or regex patterns to exclude from mirroring. Only valid with --start."),
		switchOption("json", "Output description in JSON format"),
		textOption("mirror", "mirror", "The name of the cluster mirror."),
		textOption("mirror-config", "mirror config property file",
			"Property file containing source cluster configs for mirroring."),
		textOption("topics", "topics",
			"Comma-separated list of topic names or regex patterns (e.g., 'my-topic, orders-.*,payments').", "topic"),
		switchOption("check", "With --describe: exit 1, and say why, unless every partition is ready to fail over."),
		switchOption("when-caught-up", "With --stop: wait until no partition lags, then stop."))
	for _, a := range mirrorActions {
		options = append(options, switchOption(a.name, a.about))
	}
	return tool{
		name:    "mirrors",
		usage:   "create mirrors, start, stop and describe their topics, as kafka-mirrors.sh does",
		intro:   "Create cluster mirrors and manage mirrored topics.",
		more:    mirrorsMore,
		options: options,
		run:     runMirrors,
	}.command()
}

// mirrorsCall is one run of the command.
type mirrorsCall struct {
	*cli.Context
	client *admin.Client
	mirror string
	topics admin.Selection
}

func runMirrors(c *cli.Context) error {
	action, err := checkMirrors(c)
	if err != nil {
		return err
	}
	call := mirrorsCall{Context: c, mirror: text(c, "mirror")}
	if call.topics, err = admin.ParseSelection(text(c, "topics")); err != nil {
		return fmt.Errorf("--topics: %w", err)
	}
	if call.client, err = connectAdmin(c); err != nil {
		return err
	}
	run := mirrorActions[action].run
	err = explainMirror(call.mirror, run(call))
	return errors.Join(err, call.client.Close())
}

// explainMirror turns the agent's UNKNOWN_MIRROR into the tool's words.
func explainMirror(mirror string, err error) error {
	var answered fetchwire.KafkaError
	if errors.As(err, &answered) && answered.Code == fetchwire.CodeUnknownMirror {
		return mirrorNotFound(mirror)
	}
	return explain(err)
}

func mirrorNotFound(mirror string) error {
	return kafkaSays("Mirror '%s' not found or has no configuration; --list shows the mirrors there are", mirror)
}

// checkMirrors wants a combination of options that makes sense, and returns the index of the action.
func checkMirrors(c *cli.Context) (int, error) {
	action, given := 0, 0
	for i, a := range mirrorActions {
		if c.Bool(a.name) {
			action, given = i, given+1
		}
	}
	name := mirrorActions[action].name
	gerund := map[string]string{"start": "starting", "stop": "stopping", "pause": "pausing", "resume": "resuming"}[name]
	switch {
	case given != 1:
		return 0, kafkaSays("Command must include exactly one action: " +
			"--create, --start, --stop, --delete, --pause, --resume, --list, or --describe")
	case !hasConnection(c):
		return 0, kafkaSays("--bootstrap-server must be specified")
	case text(c, "mirror") == "" && name != "list" && name != "describe":
		return 0, kafkaSays("--mirror must be specified")
	case text(c, "mirror-config") == "" && name == "create":
		return 0, kafkaSays("--mirror-config must be specified when creating a mirror")
	case text(c, "topics") == "" && gerund != "":
		return 0, kafkaSays("--topics must be specified when %s mirror topic(s)", gerund)
	case text(c, "exclude") != "" && name != "start":
		return 0, kafkaSays("--exclude is only valid with --start")
	case c.Bool("json") && name != "describe":
		return 0, kafkaSays("--json is only supported for describing mirrors")
	case c.Bool("check") && name != "describe":
		return 0, kafkaSays("--check is only valid with --describe")
	case c.Bool("when-caught-up") && name != "stop":
		return 0, kafkaSays("--when-caught-up is only valid with --stop")
	}
	if text(c, "mirror-config") != "" && name != "create" {
		return 0, invalidWith(name, "mirror-config")
	}
	if text(c, "topics") != "" && gerund == "" && name != "describe" {
		return 0, invalidWith(name, "topics")
	}
	return action, nil
}

func (c mirrorsCall) printf(format string, args ...any) { fmt.Fprintf(c.App.Writer, format, args...) }

func (c mirrorsCall) create() error {
	configs, err := readConfigFile("mirror-config", text(c.Context, "mirror-config"))
	if err != nil {
		return err
	}
	if err := c.client.CreateMirror(c.Context.Context, c.mirror, configs, admin.CreateMirrorOptions{}); err != nil {
		return err
	}
	c.printf("Created mirror %s\n", c.mirror)
	return nil
}

func (c mirrorsCall) delete() error {
	if err := c.client.DeleteMirror(c.Context.Context, c.mirror, admin.DeleteMirrorOptions{}); err != nil {
		return err
	}
	c.printf("Deleted mirror %s\n", c.mirror)
	return nil
}

func (c mirrorsCall) start() error {
	exclude, err := admin.ParseSelection(text(c.Context, "exclude"))
	if err != nil {
		return fmt.Errorf("--exclude: %w", err)
	}
	results, err := c.client.StartMirrorTopics(c.Context.Context, c.mirror, c.topics.Names,
		admin.StartMirrorTopicsOptions{IncludePatterns: c.topics.Patterns, ExcludePatterns: exclude.All()})
	if err != nil {
		return err
	}
	if len(results) == 0 {
		c.printf("No matching topics found yet. Patterns saved to mirror %s for auto-discovery.\n", c.mirror)
		return nil
	}
	return c.report("Started %d mirror topic(s) in mirror %s: [%s]\n", results)
}

func (c mirrorsCall) stop() error {
	topics, err := c.own(func(state string) bool { return state != admin.StateStopped && state != admin.StateStopping })
	if err != nil {
		return err
	}
	if c.Bool("when-caught-up") && len(topics) > 0 {
		if err := c.awaitCaughtUp(topics); err != nil {
			return err
		}
	}
	results, err := c.client.StopMirrorTopics(c.Context.Context, c.mirror, topics,
		admin.StopMirrorTopicsOptions{Patterns: c.topics.Patterns})
	if err != nil {
		return err
	}
	if results = c.without(results, fetchwire.CodeTopicNotInMirror); len(results) == 0 {
		c.printf("No matching topics found in mirror %s. What the patterns match will not be started.\n", c.mirror)
		return nil
	}
	return c.report("Stopped mirroring for %d topic(s) in mirror %s: [%s]\n", results)
}

func (c mirrorsCall) pause() error {
	topics, err := c.ownOrError(func(state string) bool { return state == admin.StateMirroring })
	if err != nil {
		return err
	}
	results, err := c.client.PauseMirrorTopics(c.Context.Context, c.mirror, topics, admin.PauseMirrorTopicsOptions{})
	if err != nil {
		return err
	}
	return c.report("Paused mirroring for %d topic(s) in mirror %s: [%s]\n",
		c.without(results, fetchwire.CodeMirrorTopicBeingStopped))
}

func (c mirrorsCall) resume() error {
	topics, err := c.ownOrError(func(state string) bool { return state == admin.StatePaused })
	if err != nil {
		return err
	}
	results, err := c.client.ResumeMirrorTopics(c.Context.Context, c.mirror, topics, admin.ResumeMirrorTopicsOptions{})
	if err != nil {
		return err
	}
	return c.report("Resumed mirroring for %d topic(s) in mirror %s: [%s]\n",
		c.without(results, fetchwire.CodeMirrorTopicNotPaused))
}

// own returns the topics named, and of the mirror's own topics those that a pattern matches and that have a partition
// in a state to apply to.
func (c mirrorsCall) own(applies func(state string) bool) ([]string, error) {
	topics := slices.Clone(c.topics.Names)
	if len(c.topics.Patterns) == 0 {
		return topics, nil
	}
	described, err := c.described()
	if err != nil {
		return nil, err
	}
	for _, t := range described.Topics {
		inState := func(p admin.PartitionDescription) bool { return applies(p.State) }
		if !slices.Contains(topics, t.Name) && c.topics.MatchesPattern(t.Name) &&
			slices.ContainsFunc(t.Partitions, inState) {
			topics = append(topics, t.Name)
		}
	}
	return topics, nil
}

func (c mirrorsCall) ownOrError(applies func(state string) bool) ([]string, error) {
	topics, err := c.own(applies)
	if err == nil && len(topics) == 0 {
		err = kafkaSays("No matching topics found in mirror %s; --describe --mirror %s shows its topics and their states",
			c.mirror, c.mirror)
	}
	return topics, err
}

// without leaves out topics that a pattern brought in and that an action no longer applies to, as code says: their
// state has changed since it was read.
func (c mirrorsCall) without(results []admin.TopicResult, code int16) []admin.TopicResult {
	return slices.DeleteFunc(results, func(r admin.TopicResult) bool {
		var answered fetchwire.KafkaError
		return errors.As(r.Err, &answered) && answered.Code == code && !slices.Contains(c.topics.Names, r.Topic)
	})
}

// described returns the mirror's description; an agent that does not answer is an error, because a pattern would miss
// what it holds.
func (c mirrorsCall) described() (*admin.MirrorDescription, error) {
	got, err := c.client.DescribeMirrors(c.Context.Context, []string{c.mirror}, admin.DescribeMirrorsOptions{})
	if err != nil {
		return nil, err
	}
	if len(got.Unreachable) > 0 {
		return nil, got.Unreachable[0]
	}
	if len(got.Mirrors) == 0 {
		return nil, mirrorNotFound(c.mirror)
	}
	return &got.Mirrors[0], got.Mirrors[0].Err
}

// report prints the line of what was done, and returns what was not.
func (c mirrorsCall) report(format string, results []admin.TopicResult) error {
	var done []string
	var errs []error
	for _, r := range results {
		if r.Err != nil {
			errs = append(errs, fmt.Errorf("topic %s of mirror %s: %w", r.Topic, c.mirror, r.Err))
			continue
		}
		done = append(done, r.Topic)
	}
	if len(done) > 0 {
		c.printf(format, len(done), c.mirror, strings.Join(done, ", "))
	}
	return errors.Join(errs...)
}
