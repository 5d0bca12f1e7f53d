// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
)

// WritersEnv names a directory with built writers, for machines without a
// compiler, such as virtual machines with another architecture.
const WritersEnv = "CUSTOM_LABELS_WRITERS"

var buildWriters = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv(WritersEnv); dir != "" {
		return filepath.Abs(dir)
	}
	root, err := repositoryRoot()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "writers-")
	if err != nil {
		return "", err
	}
	if err := removeAtExit(dir); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	out, err := exec.Command("make", "-s", "-j", strconv.Itoa(runtime.NumCPU()),
		"-C", filepath.Join(root, "testdata", "writers"), "OUT="+dir).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the writers: %w\n%s", err, out)
	}
	return dir, nil
})

// BuildWriters builds the programs of testdata/writers and returns the directory
// that holds them. It builds once in the life of a test binary; the directory goes
// when the binary ends. A machine that cannot build them fails the test.
func BuildWriters(t testing.TB) string {
	t.Helper()
	dir, err := buildWriters()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// removeAtExit leaves a shell behind whose standard input ends when this process
// does, however it does: a test binary has no hook at its end.
func removeAtExit(dir string) error {
	const script = `trap '' INT TERM HUP; read -r _; rm -rf -- "$1"`
	shell := exec.Command("sh", "-c", script, "sh", dir)
	stdin, err := shell.StdinPipe()
	if err != nil {
		return err
	}
	openUntilExit = stdin
	return shell.Start()
}

// openUntilExit keeps the garbage collector from closing the pipe.
var openUntilExit io.Closer

// repositoryRoot finds the module that the test runs in. Tests run in the
// directory of their package.
func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "testdata", "writers", "Makefile")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find testdata/writers: not in a directory above this one")
		}
		dir = parent
	}
}
