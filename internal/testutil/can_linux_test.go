// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCan(t *testing.T) {
	kept := lacking.lines
	t.Cleanup(func() { lacking.lines = kept })
	tried := 0
	lame := ability("wings", func() error { tried++; return errors.New("too heavy") })
	walking := ability("legs", func() error { return nil })
	missing := filepath.Join(t.TempDir(), "missing")
	t.Setenv(MissingEnv, missing)
	t.Setenv(MustRunEnv, "1")

	lacking.lines = nil
	require.True(t, Can(t, walking))
	require.Equal(t, &verdict{TB: t}, judge(t, func(t testing.TB) { Need(t, walking) }))
	require.NoError(t, sayLacking())
	require.NoFileExists(t, missing)

	for range 2 {
		require.False(t, Can(t, lame))
		require.Equal(t, &verdict{TB: t, skipped: true}, judge(t, func(t testing.TB) { Need(t, lame) }))
	}
	require.Equal(t, 1, tried)
	require.NoError(t, sayLacking())
	said, err := os.ReadFile(missing)
	require.NoError(t, err)
	require.Equal(t, "not on this machine: wings: too heavy: part of TestCan\n"+
		"not on this machine: wings: too heavy: TestCan\n", string(said))
}

// What is tried here ends, one way or the other.
func TestAbilities(t *testing.T) {
	for _, a := range []*Ability{Run32Bit, TraceFunctions, SwitchCPUs} {
		t.Logf("%s: %v", a.name, a.try())
	}
}
