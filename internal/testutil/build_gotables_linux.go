// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

var buildGoTables = sync.OnceValues(func() ([]string, error) {
	root, err := repositoryRoot()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(root, "build", "gopclntab")
	out, err := exec.Command("make", "-s", "-C", filepath.Join(root, "testdata", "gopclntab"), "OUT="+dir).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("build testdata/gopclntab: %w\n%s", err, out)
	}
	var paths []string
	for _, pattern := range []string{"tables-*", "cross-*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	if len(paths) == 0 {
		return nil, errors.New("no programs in " + dir)
	}
	slices.Sort(paths)
	return paths, nil
})

// BuildGoTables builds the programs of testdata/gopclntab, unless they are there
// already, and returns their paths. It fetches the releases of Go that they want as
// the go command does. A machine that cannot build them fails the test.
func BuildGoTables(t testing.TB) []string {
	t.Helper()
	paths, err := buildGoTables()
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
