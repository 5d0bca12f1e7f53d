// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
)

// UnwindEnv names a directory with the built programs of testdata/unwind, for
// machines without a compiler.
const UnwindEnv = "CUSTOM_LABELS_UNWIND"

var buildUnwind = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv(UnwindEnv); dir != "" {
		return filepath.Abs(dir)
	}
	root, err := repositoryRoot()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "build", "unwind")
	unlock, err := lockFile(dir + ".lock") // other test binaries build there, too
	if err != nil {
		return "", err
	}
	defer unlock()
	args := []string{
		"-s", "-j", strconv.Itoa(runtime.NumCPU()), "-C", filepath.Join(root, "testdata", "unwind"),
		"OUT=" + dir, "CLANG=clang-19", "MUSL_CC=musl-gcc", "GO=go", "JAVAC=javac",
	}
	if rustc, err := exec.LookPath("rustc"); err == nil {
		args = append(args, "RUSTC="+rustc)
	}
	out, err := exec.Command("make", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the programs that know their stacks: %w\n%s", err, out)
	}
	return dir, nil
})

// BuildUnwind builds the programs of testdata/unwind and returns the directory that
// holds them. A machine that cannot build them fails the test; only the one in Rust is
// left out where there is no compiler for it.
func BuildUnwind(t testing.TB) string {
	t.Helper()
	dir, err := buildUnwind()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
