package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"segmirror/dump"
)

func dumpLogCommand() *cli.Command {
	return &cli.Command{
		Name:            "dump-log",
		Usage:           "print log segments and their indexes as kafka-dump-log does",
		ArgsUsage:       "--files F1,F2,...",
		Description:     "Options and output are kafka-dump-log's; --continue goes on where that tool would stop.",
		SkipFlagParsing: true, // Kafka's options have arguments that may be left out
		HideHelp:        true,
		Action: func(c *cli.Context) error {
			return dumpLog(c.Context, c.Args().Slice(), c.App.Writer, c.App.ErrWriter)
		},
	}
}

// dumpLog exits as Kafka's tool does: 1 for wrong usage as for anything else.
// Asked for its help it exits 0, where Kafka's exits 1.
func dumpLog(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	opts, err := dump.Parse(args)
	var (
		usage  *dump.UsageError
		thrown *dump.Exception
	)
	switch {
	case errors.Is(err, dump.ErrVersion):
		_, err := fmt.Fprintf(stdout, "segmirror %s, as kafka-dump-log 4.3.1\n", version())
		return err
	case errors.Is(err, dump.ErrHelp) && len(args) > 0:
		command := dumpLogCommand()
		fmt.Fprintf(stdout, "segmirror dump-log: %s\n%s\n\n", command.Usage, command.Description)
		return dump.WriteUsage(stdout)
	case errors.Is(err, dump.ErrHelp):
		return errors.Join(errReported, dump.WriteUsage(stderr))
	case errors.As(err, &usage):
		fmt.Fprintln(stderr, usage.Text)
		return errors.Join(errReported, dump.WriteUsage(stderr))
	case errors.As(err, &thrown):
		fmt.Fprintf(stderr, "Exception in thread \"main\" %s\n", thrown.Error())
		return errReported
	case err != nil:
		return err
	}
	err = dump.Run(ctx, opts, stdout, stderr, dump.LocaleCharset())
	if errors.As(err, &usage) {
		fmt.Fprintln(stderr, usage.Text)
	} else if err != nil && !errors.Is(err, dump.ErrFaults) {
		return findingf("dump-log: %w", err)
	}
	if err != nil {
		return errReported
	}
	return nil
}
