package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
)

// signalGrace is how soon after the first signal a second one is taken for the same.
const signalGrace = 500 * time.Millisecond

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default action comes back: the second one ends the process. A supervisor may send the
	// first one twice, to the process and to its group, so a repetition within the grace is none.
	context.AfterFunc(ctx, func() { time.AfterFunc(signalGrace, stop) })
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

// run is main with its surroundings given; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := newApp(stdout, stderr).RunContext(ctx, asTool(args))
	if err == nil {
		return exitDone
	}
	if errors.Is(err, errReported) {
		return exitFinding
	}
	fmt.Fprintf(stderr, "segmirror: %s\n", oneLine(err))
	return exitCode(err)
}

func newApp(stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:  "segmirror",
		Usage: "mirror Kafka partitions at the level of their segment files",
		Description: "An agent fetches record batches from a source cluster and lets them land, byte for byte,\n" +
			"in partition directories that a Kafka broker can open.",
		Version:   version(),
		Writer:    stdout,
		ErrWriter: stderr,
		// An override may hold commas: log.dirs=A,B is one.
		DisableSliceFlagSeparator: true,
		Suggest:                   true,
		Commands: []*cli.Command{
			agentCommand(), mirrorsCommand(), configsCommand(), demoCommand(), dumpLogCommand(),
		},
		OnUsageError:   onUsageError,
		Action:         unknownCommand,
		ExitErrHandler: func(*cli.Context, error) {}, // run decides on the exit code
	}
	for _, command := range app.Commands {
		if command.OnUsageError == nil {
			command.OnUsageError = onUsageError
		}
	}
	return app
}

// unknownCommand runs when the first argument names no command.
func unknownCommand(c *cli.Context) error {
	if !c.Args().Present() {
		if err := cli.ShowAppHelp(c); err != nil {
			return err
		}
		return usagef("a command is missing")
	}
	return usagef("there is no command %q; segmirror help lists them", c.Args().First())
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	if c.Command != nil && c.Command.Name != "" && c.Command.Name != c.App.Name {
		return usagef("%s: %w; see segmirror %s --help", c.Command.Name, err, c.Command.Name)
	}
	return usagef("%w; see segmirror help", err)
}

// version returns the module version the binary was built from, (devel) outside a release.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
