// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// verdict records how a test ended instead of ending it.
type verdict struct {
	testing.TB
	skipped, failed bool
}

func (v *verdict) Helper()               {}
func (v *verdict) Skipf(string, ...any)  { v.skipped = true; runtime.Goexit() }
func (v *verdict) Fatalf(string, ...any) { v.failed = true; runtime.Goexit() }

func judge(t testing.TB, guard func(testing.TB)) *verdict {
	v := &verdict{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		guard(v)
	}()
	<-done
	return v
}

func TestSkip(t *testing.T) {
	guard := func(t testing.TB) { skip(t, errors.New("no")) }
	t.Setenv(MustRunEnv, "")
	require.Equal(t, &verdict{TB: t, skipped: true}, judge(t, guard))
	t.Setenv(MustRunEnv, "1")
	require.Equal(t, &verdict{TB: t, failed: true}, judge(t, guard))
}

// The guard itself: where the kernel lets us, it lets the test run.
func TestRequireBPF(t *testing.T) {
	v := judge(t, func(t testing.TB) { RequireBPF(t) })
	require.False(t, v.failed && probeBPF() == nil)
	require.Equal(t, probeBPF() != nil, v.skipped || v.failed)
}
