//go:build linux

// Package target compiles and runs small C programs for tests to look at.
package target

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// Program is one that runs.
type Program struct {
	Path  string
	PID   int
	Cmd   *exec.Cmd
	t     *testing.T
	lines *bufio.Reader
	in    *os.File
}

// Compile builds a C program or, with -shared, a library.
func Compile(t *testing.T, name, source string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(out+".c", []byte(source), 0o644))
	testutil.Compile(t, out, "gcc", append([]string{"-O1", "-Wall", out + ".c"}, flags...)...)
	return out
}

// Start runs a program until the end of the test.
func Start(t *testing.T, path string, args ...string) *Program {
	t.Helper()
	return StartCmd(t, exec.Command(path, args...))
}

// StartCmd does so with a command, whose input and output are Program's.
func StartCmd(t *testing.T, cmd *exec.Cmd) *Program {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdin, cmd.Stderr = r, os.Stderr
	require.NoError(t, cmd.Start())
	r.Close()
	p := &Program{t: t, Path: cmd.Path, PID: cmd.Process.Pid, Cmd: cmd, lines: bufio.NewReader(stdout), in: w}
	t.Cleanup(p.Stop)
	return p
}

// Stop ends the program.
func (p *Program) Stop() {
	p.in.Close()
	_ = p.Cmd.Process.Kill() // it may have ended
	_ = p.Cmd.Wait()
}

// Line reads a line of output into values.
func (p *Program) Line(values ...any) {
	p.t.Helper()
	s, err := p.lines.ReadString('\n')
	require.NoError(p.t, err)
	_, err = fmt.Sscan(s, values...)
	require.NoError(p.t, err, "%q", s)
}

// Tell lets the program go on.
func (p *Program) Tell() {
	p.t.Helper()
	_, err := p.in.WriteString("x")
	require.NoError(p.t, err)
}

// Common is C that all programs begin with. say prints the thread pointer and an address, await
// waits for Tell.
const Common = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
static inline void *tp(void) { void *p; __asm__("mov %%fs:0, %0" : "=r"(p)); return p; }
#else
static inline void *tp(void) { return __builtin_thread_pointer(); }
#endif
static void await(void) { char c; if (read(0, &c, 1) != 1) exit(0); }
static void say(const void *variable) { printf("%lu %lu\n", (unsigned long)tp(), (unsigned long)variable); fflush(stdout); }
`

// Definitions of the variables that programs publish labels by.
const (
	DefineV0  = "struct v0 { void *storage; uint64_t count; };\n__attribute__((visibility(\"default\"))) __thread struct v0 custom_labels_thread_local_data;\n__attribute__((visibility(\"default\"))) const int custom_labels_abi_version = 0;\n"
	DefineV1  = "__attribute__((visibility(\"default\"))) __thread void *custom_labels_current_set;\n__attribute__((visibility(\"default\"))) int custom_labels_abi_version = 1;\n"
	DefineCtx = "__attribute__((visibility(\"default\"))) __thread void *otel_thread_ctx_v1;\n"
)

// Library makes a library that tells where its thread-local variable is.
func Library(t *testing.T, define, variable string, flags ...string) string {
	source := "#include <stdint.h>\n" + define + "void *where(void) { return &" + variable + "; }\n"
	return Compile(t, "libtest"+strings.ToLower(variable)+".so", source, append([]string{"-shared", "-fPIC"}, flags...)...)
}
