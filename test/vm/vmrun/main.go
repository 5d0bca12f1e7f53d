//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/customlabels/otelcol-customlabels/test/vm/internal/guest"
)

const (
	exitTimeout  = 124
	exitNoResult = 125

	consoleTailBytes = 3000
)

func main() {
	runtime.LockOSThread() // qemu dies with it
	os.Exit(run(os.Args[1:], os.Stderr))
}

func run(args []string, stderr io.Writer) int {
	fail := func(err error) int {
		fmt.Fprintln(stderr, "vmrun:", err)
		return exitNoResult
	}
	o, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return fail(err)
	}
	work, err := os.MkdirTemp("", "vmrun-")
	if err != nil {
		return fail(err)
	}
	defer func() {
		if err := os.RemoveAll(work); err != nil {
			fmt.Fprintln(stderr, "vmrun:", err)
		}
	}()
	start := time.Now()
	m, err := newMachine(o, work)
	if err != nil {
		return fail(err)
	}
	var result *guest.Result
	var qemuErr, resultErr error
	boots := 0
	for again := true; again; {
		boots++
		qemuErr = m.run()
		result, resultErr = m.result()
		// Emulation of several CPUs that patch their code now and then lets a kernel panic early.
		if again = errors.Is(resultErr, errNoBoot) && boots < o.boots; again {
			fmt.Fprintf(stderr, "vmrun: attempt %d to boot: %v\n", boots, errors.Join(resultErr, qemuErr))
		}
	}
	showConsole := func() {
		console := m.console()
		if o.console != "" {
			return // it is in that file
		}
		fmt.Fprintf(stderr, "vmrun: end of the guest's console:\n%s\n", console[max(0, len(console)-consoleTailBytes):])
	}
	if o.console != "" {
		if err := os.WriteFile(o.console, m.console(), 0o644); err != nil {
			return fail(err)
		}
	}
	switch {
	case errors.Is(qemuErr, errTimeout):
		showConsole()
		fmt.Fprintf(stderr, "vmrun: no end after %v\n", o.timeout)
		return exitTimeout
	case resultErr != nil:
		showConsole()
		return fail(fmt.Errorf("the guest ended without a result: %w", errors.Join(resultErr, qemuErr)))
	case result.Err != "":
		return fail(fmt.Errorf("guest: %s", result.Err))
	}
	if o.out != "" {
		if err := m.unpackOut(o.out); err != nil {
			return fail(fmt.Errorf("the guest's %s did not arrive whole: %w", guest.OutDir, err))
		}
	}
	result.Boots = boots
	if o.verbose {
		fmt.Fprintf(stderr, "vmrun: %s %s, %d byte pages: %.1f s, boot %.1f s\n",
			o.arch, result.Release, result.PageSize, time.Since(start).Seconds(), result.Boot)
	}
	for i, p := range result.Programs {
		name := m.config.Commands[i].Args[0]
		if p.Signal != 0 {
			fmt.Fprintf(stderr, "vmrun: %s died by signal %d\n", name, p.Signal)
		}
		if o.verbose {
			fmt.Fprintf(stderr, "vmrun: %s: exit code %d, %.1f s\n", name, p.Code(), p.Seconds)
		}
	}
	if o.result != "" {
		if err := writeResult(o.result, result); err != nil {
			return fail(err)
		}
	}
	return result.Code()
}
