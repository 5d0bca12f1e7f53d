// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
		out, err := exec.Command("make", "-s", "-C", filepath.Join(root, "testdata", "gowriters"), "OUT="+dir).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("build the Go writers: %w\n%s", err, out)
		}
	}
	paths, err := filepath.Glob(filepath.Join(dir, "gowriter-*"))
	if err == nil && len(paths) == 0 {
		err = errors.New("no Go writers in " + dir)
	}
	slices.Sort(paths)
	return paths, err
})

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
