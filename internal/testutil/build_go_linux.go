// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// GoWritersEnv names a directory with built Go writers, for machines that cannot
// build them.
const GoWritersEnv = "CUSTOM_LABELS_GO_WRITERS"

var buildGoWriters = sync.OnceValues(func() ([]string, error) {
	dir := os.Getenv(GoWritersEnv)
	if dir == "" {
		root, err := repositoryRoot()
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(root, "build", "gowriters")
		unlock, err := lockFile(dir + ".lock") // other test binaries build there, too
		if err != nil {
			return nil, err
		}
		defer unlock()
		out, err := makeGo(filepath.Join(root, "testdata", "gowriters"), dir)
		if err != nil {
			return nil, fmt.Errorf("build the Go writers: %w\n%s", err, out)
		}
	}
	return goPrograms(dir, "gowriter-*")
})

// quickRelease of Go is the one beside the local one for which the quick form of a test
// has programs: the oldest that is supported, which differs most.
const quickRelease = "go1.22.12"

// makeGo builds the Go programs of a directory, in full those of every release.
func makeGo(from, to string) (output []byte, err error) {
	args := []string{"-s", "-C", from, "OUT=" + to}
	if !Full() {
		args = append(args, "RELEASES="+quickRelease)
	}
	return exec.Command("make", args...).CombinedOutput()
}

// goPrograms lists those that match a pattern, but for releases that were built for the
// full form.
func goPrograms(dir string, patterns ...string) (paths []string, err error) {
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	if !Full() && !Emulated() {
		paths = slices.DeleteFunc(paths, func(path string) bool {
			return strings.Contains(filepath.Base(path), "go1.") && !strings.Contains(path, quickRelease)
		})
	}
	if len(paths) == 0 {
		return nil, errors.New("no programs in " + dir)
	}
	slices.Sort(paths)
	return paths, nil
}

// lockFile waits until no other process has the lock that a file stands for.
func lockFile(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// BuildGoWriters builds the programs of testdata/gowriters, unless they are there
// already, and returns their paths. It fetches the releases of Go that they want as
// the go command does. A machine that cannot build them fails the test.
func BuildGoWriters(t testing.TB) []string {
	t.Helper()
	paths, err := buildGoWriters()
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
