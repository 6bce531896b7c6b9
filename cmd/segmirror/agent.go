package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"segmirror/replicator"
)

const agentDescription = `Reads a properties file with Kafka's key names (docs/configuration.md lists every key),
mirrors the topics it declares into log.dirs and serves /metrics and /healthz on metrics.listener.

Ctrl-C or SIGTERM closes every log cleanly and exits 0; a second one ends the process at once, which
loses nothing but makes the next start scan the logs' ends. Configuration faults exit 2 before anything
is opened.

Example:
   segmirror agent --config agent.properties --override log.dirs=/var/lib/segmirror`

func agentCommand() *cli.Command {
	return &cli.Command{
		Name:        "agent",
		Usage:       "mirror the declared mirrors until stopped",
		ArgsUsage:   " ",
		Description: agentDescription,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "config", Usage: "properties `FILE` to read (required)"},
			&cli.StringSliceFlag{
				Name: "override", Usage: "set `KEY=VALUE` over the file's value; may be given several times",
			},
		}, logFlags()...),
		Action: runAgent,
	}
}

func runAgent(c *cli.Context) error {
	if c.Args().Present() {
		return usagef("agent: unexpected argument %q", c.Args().First())
	}
	if c.String("config") == "" {
		return usagef("agent: --config FILE is missing")
	}
	overrides := c.StringSlice("override")
	for _, override := range overrides {
		if !strings.Contains(override, "=") {
			return usagef("agent: --override %q is not KEY=VALUE", override)
		}
	}
	log, err := newLogger(c, c.App.ErrWriter)
	if err != nil {
		return err
	}
	cfg, err := replicator.ReadConfig(c.String("config"), overrides)
	if err != nil {
		return err
	}
	agent, err := replicator.New(cfg, log)
	if err != nil {
		return err
	}
	return agent.Run(c.Context)
}
