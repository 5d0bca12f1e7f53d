// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const measureEnv = "CUSTOM_LABELS_MEASURE_TEST"

// TestMeasure runs measureCase in a process of its own, where it may fail.
func TestMeasure(t *testing.T) {
	for _, c := range []struct {
		name     string
		attempts int
		passes   bool
	}{
		{"keeps", 1, true},
		{"misses once", 2, true},
		{"misses twice", 3, true},
		{"misses always", 3, false},
		{"misses, then is wrong", 2, false},
		{"is wrong", 1, false},
		{"is wrong and misses", 1, false},
		{"panics", 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestMeasureCase$", "-test.v")
			cmd.Env = append(os.Environ(), measureEnv+"="+c.name)
			out, err := cmd.CombinedOutput()
			assert.Equal(t, c.passes, err == nil, "%s", out)
			assert.Equal(t, c.attempts, strings.Count(string(out), "here is attempt"), "%s", out)
			assert.Equal(t, c.attempts-1, strings.Count(string(out), "measured again: TestMeasureCase"), "%s", out)
		})
	}
}

func TestMeasureCase(t *testing.T) {
	name := os.Getenv(measureEnv)
	if name == "" {
		return
	}
	attempt := 0
	Measure(t, func(t *testing.T, bounds *Bounds) {
		attempt++
		t.Log("here is attempt " + strconv.Itoa(attempt))
		switch {
		case name == "misses once" && attempt == 1, name == "misses twice" && attempt <= 2, name == "misses always":
			assert.Less(bounds, 2, 1)
			require.Less(bounds, 2, 1, "ends the attempt")
			panic("unreachable")
		case name == "misses, then is wrong" && attempt == 1:
			assert.Less(bounds, 2, 1)
		case name == "misses, then is wrong", name == "is wrong":
			require.Equal(t, "label", "another")
		case name == "is wrong and misses":
			assert.Equal(t, "label", "another")
			require.Less(bounds, 2, 1)
		case name == "panics":
			panic("at once")
		}
	})
}
