// SPDX-License-Identifier: Apache-2.0

package weight

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEstimateJSON(t *testing.T) {
	_, err := EstimateJSON([]byte(`{"a":"[[[[{{{{\"{{{{,,,,"}`), 1200)
	require.NoError(t, err, "texts are texts")
	for _, element := range []string{"null", "1", "true", `""`, "[]", "{}"} {
		elements := strings.Repeat(element+" , ", 3) + element
		got, err := EstimateJSON([]byte(`{"profiles":[ `+elements+`]}`), 1<<62)
		require.NoError(t, err)
		require.Greater(t, got, int64(5*jsonObjectBytes), "each is a message")
		_, err = EstimateJSON([]byte(`{"profiles":[ `+elements+`]}`), 5*jsonObjectBytes)
		require.Error(t, err)
	}
	got, err := EstimateJSON([]byte(`{"values":[1,2,3],"stringTable":["a","b"],"timestampsUnixNano":["1"]}`), 1<<62)
	require.NoError(t, err)
	require.Less(t, got, int64(3*jsonObjectBytes), "texts and numbers")
	nested := func(n int) []byte {
		return append(bytes.Repeat([]byte("["), n), bytes.Repeat([]byte("]"), n)...)
	}
	_, err = EstimateJSON(nested(maxNesting), 1<<62)
	require.NoError(t, err)
	_, err = EstimateJSON(nested(maxNesting+1), 1<<62)
	require.ErrorIs(t, err, ErrNested)
	for _, text := range []string{"", "[", `{"profiles":[},},}]}]]`, "[1,]", `"`, `{"a`, `"\`, ","} {
		_, err = EstimateJSON([]byte(text), 1<<62)
		require.NoError(t, err, text)
	}
}
