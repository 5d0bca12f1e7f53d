// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEscapeJSON(t *testing.T) {
	for _, s := range []string{"plain äß 漢", "\u009b31m", "\u202e", "\U000e0001tag", "\U0001f600"} {
		data, err := json.Marshal(s)
		require.NoError(t, err)
		escaped := escapeJSON(data)
		requirePrintable(t, string(escaped))
		var back string
		require.NoError(t, json.Unmarshal(escaped, &back))
		require.Equal(t, s, back)
	}
}
