// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWrap(t *testing.T) {
	require.Equal(t, "one äöü\nthree\na-long-word\nb", Wrap("one äöü  three a-long-word b", 7))
	require.Empty(t, Wrap("", 7))
}
