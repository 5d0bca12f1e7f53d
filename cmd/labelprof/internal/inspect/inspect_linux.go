// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"time"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
	"github.com/customlabels/otelcol-customlabels/internal/labelread"
)

const (
	defaultThreads = 64
	maxThreads     = 4096
	// maxDuration bounds what one process takes.
	maxDuration = maxThreadsDuration + 15*time.Second
)

// Run is `labelprof inspect`: it shows the labels of processes. It fails with the errors of
// package command, or when one of several processes cannot be inspected, or when what was found
// cannot be printed.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("labelprof inspect", flag.ContinueOnError)
	asJSON := flags.Bool("json", false, "print JSON")
	threads := flags.Int("threads", defaultThreads, "`number` of threads to look at in each process, at most "+strconv.Itoa(maxThreads))
	rest, err := command.Parse(&command.Help{
		Name: "inspect", Synopsis: []string{"[flags] PID..."},
		About: `
Shows which labels the threads of a process publish now, where they come from, or why there
are none and what to do about that. Threads are stopped one at a time, for a fraction of a
millisecond each. Needs root or CAP_SYS_PTRACE.`,
	}, flags, args, stdout, stderr)
	if err != nil {
		return err
	}
	if *threads < 0 || *threads > maxThreads {
		return command.UsageError(stderr, "labelprof inspect: --threads must be 0 to %d", maxThreads)
	}
	pids, err := parsePIDs(rest, stderr)
	if err != nil {
		return err
	}
	of := func(ctx context.Context, pid int) processReport { return inspectProcess(ctx, pid, *threads) }
	return show(inspectAll(ctx, pids, maxDuration, of), *asJSON, stdout, stderr)
}

// inspectAll inspects one process after the other, until ctx ends. A process can make whoever reads it wait
// for as long as it likes: one that takes too long is left behind. The end of this command ends that, and
// lets its threads go.
func inspectAll(ctx context.Context, pids []int, limit time.Duration, inspect func(context.Context, int) processReport) iter.Seq2[processReport, error] {
	return func(yield func(processReport, error) bool) {
		for _, pid := range pids {
			if !yield(inspectOne(ctx, pid, limit, inspect)) {
				return
			}
		}
	}
}

func inspectOne(ctx context.Context, pid int, limit time.Duration, inspect func(context.Context, int) processReport) (processReport, error) {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan processReport, 1)
	go func() { done <- inspect(within, pid) }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return processReport{}, ctx.Err()
	case r := <-done:
		return r, nil
	case <-timer.C:
		r := processReport{PID: pid}
		return r.fail(fmt.Errorf("inspect process %d: %w", pid, labelread.ErrHangs)), nil
	}
}

func parsePIDs(args []string, stderr io.Writer) (pids []int, err error) {
	for _, arg := range args {
		pid, err := strconv.ParseUint(arg, 10, 31)
		if err != nil || pid == 0 {
			return nil, command.UsageError(stderr, "labelprof inspect: %s is not a PID", terminal.Escape(arg))
		}
		if int(pid) == os.Getpid() {
			return nil, command.UsageError(stderr, "labelprof inspect: %d is the PID of this command", pid)
		}
		pids = append(pids, int(pid))
	}
	if len(pids) == 0 {
		return nil, command.UsageError(stderr, "labelprof inspect: which PID?")
	}
	return pids, nil
}

// show prints what is found, for people each report when it is there. The error says what the exit code
// is to say.
func show(found iter.Seq2[processReport, error], asJSON bool, stdout, stderr io.Writer) error {
	var reports []processReport
	for r, err := range found {
		if err != nil {
			return err
		}
		if !asJSON {
			if err := printText(&r, len(reports) > 0, stdout, stderr); err != nil {
				return err
			}
		}
		reports = append(reports, r)
	}
	if asJSON {
		var b bytes.Buffer
		if err := writeJSON(&b, reports); err != nil {
			return err
		}
		if err := command.Print(stdout, b.Bytes()); err != nil {
			return err
		}
	}
	return outcome(reports, asJSON)
}

// printText prints a report for people, or to stderr why there is none.
func printText(r *processReport, more bool, stdout, stderr io.Writer) error {
	if r.err != nil {
		fmt.Fprintf(stderr, "labelprof inspect: %s\n", terminal.Escape(r.Error))
		return nil
	}
	var b bytes.Buffer
	if more {
		fmt.Fprintln(&b)
	}
	r.writeText(&b)
	return command.Print(stdout, b.Bytes())
}

// outcome is what the exit code is to say of reports that are printed.
func outcome(reports []processReport, asJSON bool) error {
	var result error
	failed := 0
	for i := range reports {
		switch r := &reports[i]; {
		case r.err != nil:
			failed++
		case !r.readable():
			result = command.ErrNoLabels
		}
	}
	switch {
	case failed == 1 && len(reports) == 1 && !asJSON:
		return command.ErrReported
	case failed > 0:
		return fmt.Errorf("%d of %d processes could not be inspected", failed, len(reports))
	}
	return result
}
