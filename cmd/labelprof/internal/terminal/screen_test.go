// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFirstLines(t *testing.T) {
	for n, want := range []string{"a\n", "a\n", "a\nb\n", "a\nb\nc", "a\nb\nc"} {
		require.Equal(t, want, string(FirstLines([]byte("a\nb\nc"), n)))
	}
}
