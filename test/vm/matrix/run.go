//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

const (
	buildDir = "build/vm"
	// A guest takes some minutes; a host that does other things, several times that.
	cellTimeout = time.Hour
	// runtimesMiB is the memory of guests that hold Node.js and a JVM in it, and run them.
	runtimesMiB = "4096"
)

// A goal of test/vm/Makefile.
type goal struct{ arch, name string }

// goal has what the cell's guest runs.
func (c *cell) goal() goal {
	switch {
	case c.quick:
		return goal{c.arch, "quick"}
	case c.stacks:
		return goal{c.arch, fmt.Sprintf("stacks-java%d", c.java)}
	}
	return goal{c.arch, "all"}
}

// goals returns those of all cells, each once.
func goals(chosen []cell) (needed []goal) {
	for i := range chosen {
		if g := chosen[i].goal(); !slices.Contains(needed, g) {
			needed = append(needed, g)
		}
	}
	return needed
}

func (g goal) build() error {
	return loud(exec.Command("make", "-s", "-C", "test/vm", "ARCH="+g.arch, g.name))
}

// fetch makes sure that the cell's kernel is there, so that the cell's time is its own.
func fetch(c *cell) error {
	cmd := exec.Command("test/vm/fetch.sh", "kernel", c.arch, c.series)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

func loud(cmd *exec.Cmd) error {
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// run boots the cell's guest and judges its output, which is in the returned file.
func run(c *cell) (outcome, string) {
	logs := filepath.Join(buildDir, "logs")
	log := filepath.Join(logs, c.name()+".log")
	result := filepath.Join(logs, c.name()+".json")
	fail := func(err error) (outcome, string) { return outcome{cell: *c, err: err}, log }
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return fail(err)
	}
	if err := os.RemoveAll(result); err != nil {
		return fail(err)
	}
	f, err := os.Create(log)
	if err != nil {
		return fail(err)
	}
	start := time.Now()
	cmd := exec.Command("test/vm/run.sh", arguments(c, result)...)
	cmd.Stdout, cmd.Stderr = f, f
	runErr := cmd.Run()
	if err := f.Close(); err != nil {
		return fail(err)
	}
	r, err := readResult(result)
	if err != nil { // no result: the code of run.sh says why
		return fail(fmt.Errorf("the guest did not run to its end: %w", runErr))
	}
	output, err := os.ReadFile(log)
	if err != nil {
		return fail(err)
	}
	o := judge(c, r, string(output))
	o.took = time.Since(start)
	if o.err == nil {
		o.err = runErr
	}
	return o, log
}

// arguments of run.sh.
func arguments(c *cell, result string) []string {
	dir := filepath.Join(buildDir, c.arch)
	args := []string{
		c.arch, c.series, "-v", "-result", result, "-timeout", cellTimeout.String(), "-boots", "3", "-add", dir + "/root:/",
		"-env", "CUSTOM_LABELS_MUST_RUN=1", "-env", "CUSTOM_LABELS_EMULATED=1",
	}
	if c.mayCome != 0 {
		args = append(args, "-qemu", "-smp", "-qemu", fmt.Sprintf("2,maxcpus=%d", c.mayCome))
	}
	if c.cpu != "" {
		args = append(args, "-cpu", c.cpu)
	}
	if c.stacks && !c.quick {
		args = append(args, "-add", dir+"/runtimes:/", "-add", fmt.Sprintf("%s/java%d:/", dir, c.java), "-m", runtimesMiB)
	}
	separator := "--"
	for _, p := range programs(c) {
		args = append(append(args, separator), p.words(dir)...)
		separator = "--next"
	}
	return args
}
