// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
)

var buildGoTables = sync.OnceValues(func() ([]string, error) {
	root, err := repositoryRoot()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(root, "build", "gopclntab")
	unlock, err := lockFile(dir + ".lock") // other test binaries build there, too
	if err != nil {
		return nil, err
	}
	defer unlock()
	out, err := makeGo(filepath.Join(root, "testdata", "gopclntab"), dir)
	if err != nil {
		return nil, fmt.Errorf("build testdata/gopclntab: %w\n%s", err, out)
	}
	return goPrograms(dir, "tables-*", "cross-*")
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
