package main

import (
	"io"
	"log/slog"

	"github.com/urfave/cli/v2"
)

func logFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "log-level", Value: "info", Usage: "least severe `LEVEL` to log: debug, info, warn or error",
		},
		&cli.StringFlag{
			Name: "log-format", Value: "text", Usage: "`FORMAT` of the log on stderr: text (key=value) or json",
		},
	}
}

// newLogger makes the logger that the flags ask for.
func newLogger(c *cli.Context, w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	switch name := c.String("log-level"); name {
	case "debug":
		level = slog.LevelDebug
	case "info":
		level = slog.LevelInfo
	case "warn":
		level = slog.LevelWarn
	case "error":
		level = slog.LevelError
	default:
		return nil, usagef("--log-level %q is none of debug, info, warn, error", name)
	}
	opts := &slog.HandlerOptions{Level: level}
	switch format := c.String("log-format"); format {
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	default:
		return nil, usagef("--log-format %q is neither text nor json", format)
	}
}
