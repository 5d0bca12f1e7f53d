// SPDX-License-Identifier: Apache-2.0

package input

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"

	"github.com/google/pprof/profile"
)

// readPprof hands over a gzipped pprof file; false: the file is not gzipped, so it is none.
func readPprof(path string, d *Decoder, visit func(*profile.Profile)) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	r := bufio.NewReader(file)
	if magic, _ := r.Peek(2); string(magic) != "\x1f\x8b" {
		return false, nil
	}
	if err := unpackPprof(r, d, visit); err != nil {
		return true, fmt.Errorf("read %s: %w", path, err)
	}
	return true, nil
}

func unpackPprof(r io.Reader, d *Decoder, visit func(*profile.Profile)) error {
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
