package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"segmirror/admin"
	"segmirror/fetchwire"
	"segmirror/replicator"
)

// errTool marks every error of a command that carries the name of a Kafka tool: those exit 1 whatever is wrong.
var errTool = errors.New("kafka tool")

func toolf(format string, args ...any) error {
	return marked{mark: errTool, err: fmt.Errorf(format, args...)}
}

// kafkaWords is an error in the words of Kafka's tools.
type kafkaWords string

func (w kafkaWords) Error() string { return string(w) }

func kafkaSays(format string, args ...any) error { return kafkaWords(fmt.Sprintf(format, args...)) }

// toolNames are the names under which the binary is a single command, as Kafka's scripts are called.
var toolNames = map[string]string{"kafka-mirrors": "mirrors", "kafka-mirrors.sh": "mirrors"}

// asTool returns the arguments with the command that the binary's own name stands for put in front.
func asTool(args []string) []string {
	if len(args) == 0 {
		return args
	}
	command, ok := toolNames[filepath.Base(args[0])]
	if !ok {
		return args
	}
	return append([]string{"segmirror", command}, args[1:]...)
}

// once is the value of a flag that may be given once. Kafka's tools refuse a repetition, where keeping the last would
// drop the first unseen.
type once struct {
	text       string
	set, twice bool
}

// Set takes the flag's value.
func (o *once) Set(text string) error {
	o.twice = o.twice || o.set && o.text != text
	o.text, o.set = text, true
	return nil
}

// String returns it.
func (o *once) String() string { return o.text }

func textFlag(name string, aliases ...string) cli.Flag {
	return &cli.GenericFlag{Name: name, Aliases: aliases, Value: &once{}}
}

// text returns a text flag's value, without space around it.
func text(c *cli.Context, name string) string {
	if o, ok := c.Generic(name).(*once); ok {
		return strings.TrimSpace(o.text)
	}
	return ""
}

// toolOption is one option of a tool, as its help shows it.
type toolOption struct {
	flag  cli.Flag
	value string // what follows it, "" for a switch
	about string
}

func textOption(name, value, about string, aliases ...string) toolOption {
	return toolOption{textFlag(name, aliases...), "<String: " + value + ">", about}
}

func switchOption(name, about string) toolOption {
	return toolOption{flag: &cli.BoolFlag{Name: name}, about: about}
}

// tool describes a command with a Kafka tool's manners.
type tool struct {
	name, usage string
	intro       string // first line of the help
	more        string // what follows the options there
	options     []toolOption
	run         func(c *cli.Context) error
}

func (t tool) command() *cli.Command {
	t.options = append(t.options, switchOption("help", "Print usage information."),
		switchOption("version", "Display segmirror version."))
	command := &cli.Command{
		Name: t.name, Usage: t.usage, ArgsUsage: " ", Description: t.more, CustomHelpTemplate: t.help(),
		OnUsageError: t.usageError,
		Action: func(c *cli.Context) error {
			if err := t.act(c); err != nil {
				return marked{mark: errTool, err: err}
			}
			return nil
		},
	}
	for _, o := range t.options {
		if o.flag.Names()[0] != "help" { // the library has it
			command.Flags = append(command.Flags, o.flag)
		}
	}
	return command
}

func (t tool) act(c *cli.Context) error {
	if c.Bool("version") {
		fmt.Fprintln(c.App.Writer, version())
		return nil
	}
	if c.Args().Present() {
		return fmt.Errorf("unexpected argument %q; see segmirror %s --help", c.Args().First(), t.name)
	}
	for _, o := range t.options {
		name := o.flag.Names()[0]
		if v, ok := c.Generic(name).(*once); ok && v.twice {
			return kafkaSays("Found multiple arguments for option %s, but you asked for only one", name)
		}
	}
	return t.run(c)
}

// usageError gives the flag parser's complaints the words of Kafka's tools.
func (t tool) usageError(_ *cli.Context, err error, _ bool) error {
	words := err.Error()
	if name, ok := strings.CutPrefix(words, "flag provided but not defined: -"); ok {
		words = strings.TrimLeft(name, "-") + " is not a recognized option"
	} else if name, ok := strings.CutPrefix(words, "flag needs an argument: -"); ok {
		words = "Option " + strings.TrimLeft(name, "-") + " requires an argument"
	}
	return toolf("%s; see segmirror %s --help", words, t.name)
}

// invalidWith is the complaint of Kafka's tools about two options that exclude each other.
func invalidWith(option, other string) error {
	return kafkaSays("Option \"[%s]\" can't be used with option \"[%s]\"", option, other)
}

// connectionOptions are those by which a tool reaches agents.
func connectionOptions(server string) []toolOption {
	return []toolOption{
		textOption("agents", "agents to ask", "Comma-separated list of agents, host:port each, that are all asked, "+
			"beside the bootstrap server; their answers are merged."),
		textOption("bootstrap-server", "server to connect to", server),
		textOption("command-config", "command config property file",
			"Property file containing configs to be passed to Admin Client."),
	}
}

// connectAdmin returns a client for the connection options. Nothing is connected yet.
func connectAdmin(c *cli.Context) (*admin.Client, error) {
	cfg := admin.Config{
		BootstrapServers: splitCommas(text(c, "bootstrap-server")), Agents: splitCommas(text(c, "agents")),
	}
	path := text(c, "command-config")
	if path == "" {
		return admin.New(cfg)
	}
	file, err := replicator.ReadClientFile(path)
	if err != nil {
		return nil, err
	}
	for _, key := range file.Unknown {
		warn(c, "%s: %s is no key of a Kafka client and is not used", path, key)
	}
	dial, err := file.Client.DialConfig("", file.ClientID)
	if err != nil {
		return nil, err
	}
	cfg.ClientID, cfg.TLS, cfg.SASL = dial.ClientID, dial.TLS, dial.SASL
	cfg.ConnectTimeout, cfg.RequestTimeout, cfg.CallTimeout = dial.DialTimeout, dial.RequestTimeout, file.CallTimeout
	return admin.New(cfg)
}

func hasConnection(c *cli.Context) bool { return text(c, "bootstrap-server")+text(c, "agents") != "" }

func warn(c *cli.Context, format string, args ...any) {
	fmt.Fprintf(c.App.ErrWriter, "segmirror: warning: "+format+"\n", args...)
}

// warnUnreachable names the agents whose part of an answer is missing.
func warnUnreachable(c *cli.Context, missing []*admin.AgentError) {
	for _, e := range missing {
		warn(c, "%s does not answer, what it holds is missing here: %s", e.Addr, oneLine(e.Err))
	}
}

// explain adds what to do to an error of a call.
func explain(err error) error {
	var agent *admin.AgentError
	var answered fetchwire.KafkaError
	var foreign *fetchwire.NotKafkaError
	if !errors.As(err, &agent) || errors.As(err, &answered) || errors.As(err, &foreign) ||
		errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w; check that an agent runs and that this is one of its listeners", err)
}

func splitCommas(list string) []string {
	var out []string
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// readConfigFile reads the properties of a file named by an option.
func readConfigFile(option, path string) (map[string]string, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("--%s: %w", option, err)
	}
	return replicator.ReadProperties(path)
}
