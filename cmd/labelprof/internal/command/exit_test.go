// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestErrorsAreEscaped: no error reaches the terminal, whatever it quotes; several are a line each.
func TestErrorsAreEscaped(t *testing.T) {
	var stderr bytes.Buffer
	err := errors.Join(errors.New("open \x1b[2J: no such file"), errors.New("read \x1b]0;x\a\u009b\xff"))
	require.Equal(t, ExitError, ExitCode("top", err, &stderr))
	require.Equal(t, "labelprof top: open \\x1b[2J: no such file\nread \\x1b]0;x\\a\\u009b\\xff\n", stderr.String())
}
