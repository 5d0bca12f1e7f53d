// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"errors"
	"fmt"
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
	dir := filepath.Join(root, "build", "writers")
	unlock, err := lockFile(dir + ".lock") // other test binaries build there, too
	if err != nil {
		return "", err
	}
	defer unlock()
	out, err := exec.Command("make", "-s", "-j", strconv.Itoa(runtime.NumCPU()),
		"-C", filepath.Join(root, "testdata", "writers"), "OUT="+dir).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the writers: %w\n%s", err, out)
	}
	return dir, nil
})

// BuildWriters builds the programs of testdata/writers and returns the directory that
// holds them. A machine that cannot build them fails the test.
func BuildWriters(t testing.TB) string {
	t.Helper()
	dir, err := buildWriters()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

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
