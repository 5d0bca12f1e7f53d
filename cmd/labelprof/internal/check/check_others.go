// SPDX-License-Identifier: Apache-2.0

//go:build !linux || !(amd64 || arm64)

package check

import (
	"context"
	"errors"
	"io"
)

// Run is `labelprof check`, which there is elsewhere.
func Run(context.Context, []string, io.Writer, io.Writer) error {
	return errors.New("processes can be checked on Linux only, on x86-64 and aarch64")
}
