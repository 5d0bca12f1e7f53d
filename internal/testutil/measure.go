// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// measureAttempts is how often Measure measures at most. What one run in a hundred misses
// by noise is then missed by one in a million; what is really broken is missed each time.
const measureAttempts = 3

// errMissed ends an attempt.
var errMissed = errors.New("a bound was missed")

// Bounds is for assertions about what was measured, which other programs of the machine,
// or of its host, can move: times, shares, numbers of what was sampled by chance. What must
// never be, a wrong label for one, is asserted with the *testing.T, and no further attempt
// makes up for it.
type Bounds struct {
	t      testing.TB
	missed bool
}

// Errorf implements require.TestingT.
func (b *Bounds) Errorf(format string, args ...any) {
	b.t.Helper()
	b.missed = true
	b.t.Logf(format, args...)
}

// FailNow implements require.TestingT: it ends the attempt.
func (b *Bounds) FailNow() { panic(errMissed) }

// Measure runs a measurement as a subtest, until it keeps its bounds or has missed them three
// times. Each time but the last is printed: "measured again: NAME". When a measurement has
// failed by its *testing.T, it is not repeated.
func Measure(t *testing.T, measurement func(t *testing.T, bounds *Bounds)) {
	t.Helper()
	for attempt := 1; attempt <= measureAttempts; attempt++ {
		missed := false
		passed := t.Run("attempt "+strconv.Itoa(attempt), func(t *testing.T) {
			missed = measureOnce(t, measurement)
			if missed && attempt == measureAttempts {
				t.Errorf("missed its bounds %d times", attempt)
			}
		})
		if !passed || !missed {
			return
		}
		fmt.Printf("measured again: %s missed its bounds in attempt %d\n", t.Name(), attempt)
	}
}

// measureOnce reports whether a measurement has missed a bound.
func measureOnce(t *testing.T, measurement func(*testing.T, *Bounds)) (missed bool) {
	t.Helper()
	b := &Bounds{t: t}
	defer func() {
		if r := recover(); r != nil && r != errMissed { //nolint:errorlint // what was thrown, not an error
			panic(r)
		}
		missed = b.missed
	}()
	measurement(t, b)
	return b.missed
}

var _ require.TestingT = (*Bounds)(nil)
