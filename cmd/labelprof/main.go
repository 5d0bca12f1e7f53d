// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage:
  labelprof serve [flags] [FILE...] receive OTLP profiles or read files, show CPU by label, also as a web page
  labelprof top [flags] FILE...    show CPU by label in files of OTLP profiles
  labelprof pprof -o OUT FILE...   convert files of OTLP profiles to pprof
  labelprof inspect [flags] PID... show which labels a process publishes, or why none
labelprof COMMAND -h lists the flags.
`

// Exit codes.
const (
	exitOK       = 0
	exitError    = 1
	exitUsage    = 2
	exitNoLabels = 3 // of inspect
)

// errUsage says that the command line makes no sense; what and how is printed already.
var errUsage = errors.New("usage")

// errReported says that something failed; what is printed already.
var errReported = errors.New("failed")

// errNoLabels says that a process has no labels that could be read.
var errNoLabels = errors.New("no labels")

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
		"serve":   serve,
		"top":     top,
		"pprof":   convert,
		"inspect": inspect,
	}
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	err := commands[args[0]](ctx, args[1:], stdout, stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.Is(err, errUsage):
		return exitUsage
	case errors.Is(err, errNoLabels):
		return exitNoLabels
	case errors.Is(err, errReported):
		return exitError
	default:
		fmt.Fprintf(stderr, "labelprof %s: %v\n", args[0], err)
		return exitError
	}
}
