// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

func TestEscapeJSON(t *testing.T) {
	for _, s := range []string{"plain äß 漢", "\u009b31m", "\u202e", "\U000e0001tag", "\U0001f600"} {
		data, err := json.Marshal(s)
		require.NoError(t, err)
		escaped := string(EscapeJSON(data))
		require.False(t, strings.ContainsFunc(escaped, func(r rune) bool { return !unicode.IsPrint(r) }), escaped)
		var back string
		require.NoError(t, json.Unmarshal([]byte(escaped), &back))
		require.Equal(t, s, back)
	}
}
