// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// failing is a writer that fails.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestPrint: what cannot be written is an error, but for a pager that was left.
func TestPrint(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, Print(&b, []byte("found\n")))
	require.Equal(t, "found\n", b.String())
	require.ErrorIs(t, Print(failing{syscall.ENOSPC}, nil), syscall.ENOSPC)
	require.NoError(t, Print(failing{&os.PathError{Err: syscall.EPIPE}}, nil))
}
