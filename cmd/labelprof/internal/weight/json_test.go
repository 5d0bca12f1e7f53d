// SPDX-License-Identifier: Apache-2.0

package weight

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEstimateJSON(t *testing.T) {
	_, err := EstimateJSON([]byte(`{"a":"[[[[{{{{\"{{{{,,,,"}`), 1200)
	require.NoError(t, err, "texts are texts")
	_, err = EstimateJSON([]byte(`{"profiles":[null,null,null,null]}`), 4*jsonObjectBytes)
	require.Error(t, err, "each is a message")
	_, err = EstimateJSON(bytes.Repeat([]byte("["), maxNesting), 1<<62)
	require.NoError(t, err)
	_, err = EstimateJSON(bytes.Repeat([]byte("["), maxNesting+1), 1<<62)
	require.ErrorIs(t, err, ErrNested)
}
