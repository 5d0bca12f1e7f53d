// SPDX-License-Identifier: Apache-2.0

//go:build !linux || !(amd64 || arm64)

package inspect

import (
	"context"
	"errors"
	"io"
)

// Run is `labelprof inspect`, which there is elsewhere.
func Run(context.Context, []string, io.Writer, io.Writer) error {
	return errors.New("processes can be inspected on Linux only, on x86-64 and aarch64")
}
