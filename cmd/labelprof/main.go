// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/check"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/files"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/inspect"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/push"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/serve"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
)

const usage = `usage:
  labelprof serve [flags] [FILE...] receive OTLP profiles or read files, show CPU by label, also as a web page
  labelprof top [flags] FILE...    show CPU by label in files of OTLP profiles
  labelprof pprof -o OUT FILE...   convert files of OTLP profiles to pprof
  labelprof push [flags] FILE...   send files of OTLP profiles or pprof to Pyroscope
  labelprof inspect [flags] PID... show which labels a process publishes, or why none
  labelprof check [flags] PID      judge by the specifications what a process, or -- COMMAND, publishes
labelprof help COMMAND, or COMMAND -h, says what it does, its flags and exit codes; labelprof --version.
`

// version is that of a release, which the linker sets: scripts/release.sh.
var version string

// signalGrace is how long after the first signal another one ends the command at once, where it
// waits for something that no context ends: to open a pipe, to read a terminal. Not from the start:
// timeout(1) and the like send a signal to the process and then to its group, and files are
// written meanwhile.
const signalGrace = time.Second

func main() {
	ending := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup(1)
		ending = append(ending, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ending...)
	context.AfterFunc(ctx, func() { time.AfterFunc(signalGrace, stop) })
	// Of a pager that was left: the files are still to be written. Caught by nobody rather than ignored, as a
	// command that check runs would have it ignored, too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
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
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return command.ExitUsage
	}
	switch args[0] {
	case "-h", "-help", "--help", "help":
		if len(args) > 1 && args[0] == "help" {
			args = []string{args[1], "-h"}
			break
		}
		fmt.Fprint(stdout, usage)
		return command.ExitOK
	case "-version", "--version", "version":
		fmt.Fprintln(stdout, build())
		return command.ExitOK
	}
	if commands[args[0]] == nil {
		fmt.Fprintf(stderr, "labelprof: there is no command %s\n%s", terminal.Escape(args[0]), usage)
		return command.ExitUsage
	}
	return command.ExitCode(args[0], commands[args[0]](ctx, args[1:], stdout, stderr), stderr)
}

// build says which build this is: the release; else the version of the module, and the commit
// if the build knows that, with a + if files were changed.
func build() string {
	if version != "" {
		return "labelprof " + version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "labelprof, of an unknown build"
	}
	text := "labelprof " + info.Main.Version
	changed := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			text += " " + s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+"
		}
	}
	return text + changed + " " + info.GoVersion
}
