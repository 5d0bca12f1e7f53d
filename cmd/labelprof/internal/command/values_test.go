// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestList(t *testing.T) {
	var l List
	require.NoError(t, l.Set(" tenant, route\t,a b"))
	require.Equal(t, List{"tenant", "route", "a b"}, l)
	for _, bad := range []string{"", " ", "a,,b", "a, "} {
		require.Error(t, l.Set(bad), "%q", bad)
	}
}
