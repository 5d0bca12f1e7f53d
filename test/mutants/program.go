package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Environment of a program that was built with the overlay.
const (
	mutantVariable  = "CUSTOM_LABELS_MUTANT"
	reachedVariable = "CUSTOM_LABELS_MUTANT_REACHED"
)

// Programs are the test programs.
type programs struct {
	root, dir string
	baseline  map[testRun]*outcome // of each test without a mutation
}

// build builds the test programs of directories.
func (p *programs) build(ctx context.Context, overlayPath string, dirs []string) error {
	args := []string{"test", "-c", "-vet=off", "-overlay", overlayPath, "-o", p.dir + string(filepath.Separator)}
	for _, dir := range dirs {
		args = append(args, "./"+dir)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = p.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests with the mutations: %w\n%s", err, out)
	}
	return nil
}

func (p *programs) path(dir string) string {
	return filepath.Join(p.dir, filepath.Base(dir)+".test")
}

// list returns the names of a package's tests.
func (p *programs) list(ctx context.Context, dir string) ([]string, error) {
	cmd := exec.CommandContext(ctx, p.path(dir), "-test.list=^(Test|Example|Fuzz)")
	cmd.Dir = filepath.Join(p.root, dir)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", dir, err)
	}
	return strings.Fields(string(out)), nil
}

// An outcome is what came of one run.
type outcome struct {
	passed  bool
	hung    bool
	reached []uint32 // mutations whose place was
	by      string   // the test that failed first
	ran     int      // tests of the top level that passed
	output  string
	took    time.Duration
}

// run runs a test with one mutation, 0 for none.
func (p *programs) run(ctx context.Context, test testRun, number uint32, deadline time.Duration) (*outcome, error) {
	scratch, err := os.MkdirTemp(p.dir, "run")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	reached := filepath.Join(scratch, "reached")
	if err := os.WriteFile(reached, nil, 0o600); err != nil {
		return nil, err
	}
	// Tests have children of other users.
	if err := errors.Join(os.Chmod(scratch, 0o777), os.Chmod(reached, 0o666)); err != nil {
		return nil, err
	}

	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path(test.dir), "-test.v", "-test.failfast", "-test.run="+test.pattern())
	cmd.Dir = filepath.Join(p.root, test.dir)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", mutantVariable, number), reachedVariable+"="+reached, "TMPDIR="+scratch)
	// In a group of its own, so that its children end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	// A file, not a pipe: a child that outlives its test does not hold it.
	out, err := os.Create(filepath.Join(scratch, "output"))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	took := time.Since(start)
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what a failed test has left behind
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		return nil, fmt.Errorf("run the tests of %s: %w", test.dir, err)
	}
	text, readErr := os.ReadFile(out.Name())
	numbers, numbersErr := os.ReadFile(reached)
	if err := errors.Join(readErr, numbersErr); err != nil {
		return nil, err
	}
	o := parseOutput(string(text))
	o.took = took
	o.passed = err == nil
	o.hung = errors.Is(ctx.Err(), context.DeadlineExceeded)
	for _, field := range strings.Fields(string(numbers)) {
		n, err := strconv.ParseUint(field, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("read what %s has reached: %w", test, err)
		}
		o.reached = append(o.reached, uint32(n))
	}
	return o, nil
}

// parseOutput reads what -test.v prints.
func parseOutput(text string) *outcome {
	o := &outcome{output: text}
	running := ""
	for _, line := range regexp.MustCompile(`(?m)^ *(=== RUN|--- FAIL:|--- PASS:) +(\S+)`).FindAllStringSubmatch(text, -1) {
		name := line[2]
		switch {
		case line[1] == "=== RUN":
			running = name
		case line[1] == "--- FAIL:" && (o.by == "" || strings.HasPrefix(name, o.by+"/")):
			o.by = name
		case line[1] == "--- PASS:" && !strings.Contains(name, "/"):
			o.ran++
		}
	}
	if o.by == "" {
		o.by = running // it ended the whole program
	}
	return o
}

// reaches reports whether the test runs the place of a mutation. It is not known of BPF
// programs: their tests are the ones that were named.
func (o *outcome) reaches(m *mutation) bool {
	return m.isBPF() || slices.Contains(o.reached, m.number)
}
