// SPDX-License-Identifier: Apache-2.0

package input

import (
	"compress/gzip"
	"io"

	"github.com/google/pprof/profile"
)

// gzipMagic is how a gzipped file begins.
const gzipMagic = "\x1f\x8b"

// readPprof hands over a gzipped pprof file.
func readPprof(r io.Reader, d *Decoder, visit func(*profile.Profile)) error {
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	data, err := readUpTo(unpacked, d.memory.file())
	if err != nil {
		return err
	}
	return d.profile(data, visit)
}
