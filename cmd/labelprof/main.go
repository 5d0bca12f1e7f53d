// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/check"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/files"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/inspect"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/push"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/serve"
)

const usage = `usage:
  labelprof serve [flags] [FILE...] receive OTLP profiles or read files, show CPU by label, also as a web page
  labelprof top [flags] FILE...    show CPU by label in files of OTLP profiles
  labelprof pprof -o OUT FILE...   convert files of OTLP profiles to pprof
  labelprof push [flags] FILE...   send files of OTLP profiles or pprof to Pyroscope
  labelprof inspect [flags] PID... show which labels a process publishes, or why none
  labelprof check [flags] PID      judge by the specifications what a process, or -- COMMAND, publishes
labelprof COMMAND -h lists the flags.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	signal.Ignore(syscall.SIGPIPE) // of a pager that was left: the files are still to be written
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the command without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	commands := map[string]func(context.Context, []string, io.Writer, io.Writer) error{
		"serve":   serve.Run,
		"top":     files.Top,
		"pprof":   files.Convert,
		"push":    push.Run,
		"inspect": inspect.Run,
		"check":   check.Run,
	}
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprint(stderr, usage)
		return command.ExitUsage
	}
	return command.ExitCode(args[0], commands[args[0]](ctx, args[1:], stdout, stderr), stderr)
}
