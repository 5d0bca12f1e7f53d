// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
)

const (
	defaultThreads = 64
	maxThreads     = 4096
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
	// A process can make whoever reads it wait for as long as it likes. The end
	// of this one ends that, and lets its threads go.
	done := make(chan []processReport, 1)
	go func() {
		var reports []processReport
		for _, pid := range pids {
			reports = append(reports, inspectProcess(ctx, pid, *threads))
		}
		done <- reports
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case reports := <-done:
		return show(reports, *asJSON, stdout, stderr)
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

// show prints what was found. The error says what the exit code is to say.
func show(reports []processReport, asJSON bool, stdout, stderr io.Writer) error {
	var found bytes.Buffer
	if asJSON {
		if err := writeJSON(&found, reports); err != nil {
			return err
		}
	} else {
		writeTexts(&found, reports, stderr)
	}
	if err := command.Print(stdout, found.Bytes()); err != nil {
		return err
	}
	return outcome(reports, asJSON)
}

// writeTexts prints the reports for people, and to stderr why there is none of a process.
func writeTexts(w io.Writer, reports []processReport, stderr io.Writer) {
	for i := range reports {
		r := &reports[i]
		if r.err != nil {
			fmt.Fprintf(stderr, "labelprof inspect: %s\n", terminal.Escape(r.Error))
			continue
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		r.writeText(w)
	}
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
