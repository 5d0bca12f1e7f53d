// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"io"
	"syscall"
)

// Print writes what a command has found, in one write. It fails with the error of the writer,
// but for a pager that was left: that has what it wanted.
func Print(stdout io.Writer, found []byte) error {
	if _, err := stdout.Write(found); err != nil && !errors.Is(err, syscall.EPIPE) {
		return err
	}
	return nil
}
