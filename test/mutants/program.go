package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Environment of a program that was built with the overlay.
const (
	mutantVariable  = "CUSTOM_LABELS_MUTANT"
	reachedVariable = "CUSTOM_LABELS_MUTANT_REACHED"
)

// deadlineFactor is how many times as long as without a mutation tests may take, at least:
// other programs may have the CPUs.
const deadlineFactor = 10

// Programs are the test programs, by directory of the package.
type programs struct {
	root, dir string
	deadline  time.Duration
	paths     map[string]string
	baseline  map[testRun]time.Duration
}

func (p *programs) build(overlayPath string, dirs []string) error {
	p.paths, p.baseline = map[string]string{}, map[testRun]time.Duration{}
	for _, dir := range dirs {
		path := filepath.Join(p.dir, strings.ReplaceAll(dir, "/", "-")+".test")
		cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlayPath, "-o", path, "./"+dir)
		cmd.Dir = p.root
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build the tests of %s with the mutations: %w\n%s", dir, err, out)
		}
		p.paths[dir] = path
	}
	return nil
}

// An outcome is what came of one run.
type outcome struct {
	passed  bool
	hung    bool
	reached bool     // the mutated place
	by      string   // the test that failed first
	ran     []string // top level, not skipped
	skipped []string
	output  string
	took    time.Duration
}

// run runs tests with one mutation, 0 for none.
func (p *programs) run(ctx context.Context, tests testRun, number uint32) (*outcome, error) {
	deadline := deadlineFactor * p.deadline
	if number != 0 {
		deadline = max(p.deadline, deadlineFactor*p.baseline[tests])
	}
	scratch, err := os.MkdirTemp(p.dir, "run")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	if err := os.Chmod(scratch, 0o777); err != nil { // tests have children of other users
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.paths[tests.dir], "-test.v", "-test.failfast", "-test.run="+tests.pattern)
	reached := filepath.Join(scratch, "reached")
	cmd.Dir = filepath.Join(p.root, tests.dir)
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
	start := time.Now()
	err = cmd.Run()
	took := time.Since(start)
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what a failed test has left behind
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		return nil, fmt.Errorf("run the tests of %s: %w", tests.dir, err)
	}
	text, readErr := os.ReadFile(out.Name())
	if readErr != nil {
		return nil, readErr
	}
	o := parseOutput(string(text))
	o.took = took
	o.passed = err == nil
	o.hung = errors.Is(ctx.Err(), context.DeadlineExceeded)
	_, err = os.Stat(reached)
	o.reached = err == nil
	return o, nil
}

// parseOutput reads what -test.v prints.
func parseOutput(text string) *outcome {
	o := &outcome{output: text}
	running := ""
	for _, line := range regexp.MustCompile(`(?m)^ *(=== RUN|--- FAIL:|--- SKIP:|--- PASS:) +(\S+)`).FindAllStringSubmatch(text, -1) {
		name := line[2]
		top := !strings.Contains(name, "/")
		switch {
		case line[1] == "=== RUN":
			running = name
		case line[1] == "--- FAIL:" && (o.by == "" || strings.HasPrefix(name, o.by+"/")):
			o.by = name
		case line[1] == "--- SKIP:":
			o.skipped = append(o.skipped, name)
		case line[1] == "--- PASS:" && top:
			o.ran = append(o.ran, name)
		}
	}
	if o.by == "" {
		o.by = running // it ended the whole program
	}
	return o
}

// runBaseline runs each of the tests without a mutation: they must be there and pass.
func (p *programs) runBaseline(ctx context.Context, tests []testRun, parallel int) error {
	var mu sync.Mutex
	var errs []error
	each(tests, parallel, func(t testRun) {
		o, err := p.run(ctx, t, 0)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
		case !o.passed:
			err = fmt.Errorf("%s fails without a mutation:\n%s", t, o.output)
		case len(o.ran) < strings.Count(t.pattern, "|")+1:
			err = fmt.Errorf("%s: of these tests, only %v were run, and %v skipped", t, o.ran, o.skipped)
		default:
			p.baseline[t] = o.took
		}
		errs = append(errs, err)
	})
	return errors.Join(errs...)
}

func (t testRun) String() string { return t.dir + " " + t.pattern }

// each calls f for all values, several at a time.
func each[T any](values []T, parallel int, f func(T)) {
	var wg sync.WaitGroup
	free := make(chan struct{}, parallel)
	for _, v := range values {
		free <- struct{}{}
		wg.Go(func() {
			f(v)
			<-free
		})
	}
	wg.Wait()
}
