// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package check

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/writercheck"
)

const (
	defaultSeconds = 5
	maxSeconds     = 3600
	// grace is for what goes on when the time is over: a look, a stop.
	grace = 15 * time.Second
)

// options are the flags.
type options struct {
	asJSON  bool
	summary string
	seconds float64
}

func (o *options) duration() time.Duration { return time.Duration(o.seconds * float64(time.Second)) }

// Run is `labelprof check`: it judges a process, or a command that it runs. It fails with
// command.ErrReported if a rule is broken, and with command.ErrNotJudged, also where the report
// cannot be printed.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	flags := flag.NewFlagSet("labelprof check", flag.ContinueOnError)
	flags.BoolVar(&o.asJSON, "json", false, "print JSON")
	flags.StringVar(&o.summary, "summary", "", "print a summary in this `format`: markdown")
	flags.Float64Var(&o.seconds, "seconds", defaultSeconds, "`number` of seconds to watch")
	var program []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, program = args[:i], args[i+1:]
		if len(program) == 0 {
			return command.UsageError(stderr, "labelprof check: which command?")
		}
	}
	rest, err := command.Parse(&command.Help{
		Name: "check", Synopsis: []string{"[flags] PID", "[flags] -- COMMAND [ARGUMENT...]"},
		About: `
Judges what a program publishes by the specifications: custom labels v0 and v1, thread
context (OTEP 4947), process context (OTEP 4719), what Node.js and Go publish. Watches a
process, or runs a command, for some seconds, and stops its threads many times a second, for
a fraction of a millisecond each. Of a command, all processes that publish are watched; its
output goes to stderr, and it is ended afterwards.
Let the program do what it labels meanwhile. Needs root or CAP_SYS_PTRACE.`,
	}, flags, args, stdout, stderr)
	if err != nil {
		return err
	}
	switch {
	case !(o.seconds > 0 && o.seconds <= maxSeconds):
		return command.UsageError(stderr, "labelprof check: --seconds must be more than 0, at most %d", maxSeconds)
	case o.summary != "" && o.summary != "markdown":
		return command.UsageError(stderr, "labelprof check: --summary %s is not known, only markdown", terminal.Escape(o.summary))
	case o.summary != "" && o.asJSON:
		return command.UsageError(stderr, "labelprof check: --json or --summary, not both")
	case program != nil && len(rest) > 0, program == nil && len(rest) != 1:
		return command.UsageError(stderr, "labelprof check: one PID, or -- and a command")
	}
	j, err := judged(ctx, &o, program, rest, stderr)
	if err == nil {
		err = show(&o, j, stdout)
	}
	switch {
	case errors.Is(err, command.ErrUsage), errors.Is(err, command.ErrNotJudged):
		return err
	case err != nil:
		return notJudged(err, stderr)
	}
	return outcome(j)
}

// notJudged says why nothing was judged.
func notJudged(err error, stderr io.Writer) error {
	fmt.Fprintf(stderr, "labelprof check: %s\n", terminal.Escape(err.Error()))
	return command.ErrNotJudged
}

// judged watches the process, or the command. That fails with command.ErrNotJudged where it has been
// said why.
func judged(ctx context.Context, o *options, program, rest []string, stderr io.Writer) (*judgement, error) {
	if program != nil {
		c, err := start(program, stderr)
		if err != nil {
			return nil, err
		}
		j, err := watched(ctx, o.duration(), func(ctx context.Context) (*judgement, error) { return c.watch(ctx, o.duration()) })
		switch {
		case err == nil:
		case errors.Is(err, procfs.ErrNoProcess) && c.over():
			return nil, fmt.Errorf("the command ended before it was judged (%s): have it run for the %g seconds that it is watched", c.end(), o.seconds)
		default:
			err = notJudged(err, stderr) // before what may take a while
		}
		c.end()
		return j, err
	}
	pid, err := strconv.ParseUint(rest[0], 10, 31)
	if err != nil || pid == 0 {
		return nil, command.UsageError(stderr, "labelprof check: %s is not a PID; a command stands behind --", terminal.Escape(rest[0]))
	}
	if int(pid) == os.Getpid() {
		return nil, command.UsageError(stderr, "labelprof check: %d is the PID of this command", pid)
	}
	return watched(ctx, o.duration(), func(ctx context.Context) (*judgement, error) {
		report, err := writercheck.Watch(ctx, int(pid), o.duration())
		return &judgement{Report: report}, err
	})
}

var errHangs = errors.New("reading the process hangs")

// watched watches. A process can keep whoever reads it waiting for as long as it likes, also while it is
// looked for: the end of this command ends that, and lets its threads go.
func watched(ctx context.Context, duration time.Duration, watch func(context.Context) (*judgement, error)) (*judgement, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		j   *judgement
		err error
	}
	done := make(chan result, 1)
	follow := func() {
		j, err := watch(ctx)
		done <- result{j, err}
	}
	go follow()
	timer := time.NewTimer(maxSelection + duration + grace)
	defer timer.Stop()
	select {
	case r := <-done:
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return r.j, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, errHangs
	}
}

// show prints a report.
func show(o *options, report *judgement, stdout io.Writer) error {
	var b bytes.Buffer
	switch {
	case o.asJSON:
		if err := writeJSON(&b, report); err != nil {
			return err
		}
	case o.summary != "":
		b.WriteString(markdown(report))
	default:
		b.WriteString(text(report))
	}
	return command.Print(stdout, b.Bytes())
}

// outcome is what the exit code is to say of a report that is printed.
func outcome(report *judgement) error {
	switch report.Verdict() {
	case writercheck.Broken:
		return command.ErrReported
	case writercheck.NotSeen:
		return command.ErrNotJudged
	}
	return nil
}
