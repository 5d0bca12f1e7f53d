// SPDX-License-Identifier: Apache-2.0

package pprof

import (
	"io"
	"os"
	"path/filepath"
)

// replaceFile writes a file under another name first: a reader finds all or nothing. Only
// its owner may read it, whatever the one before was: labels may be secrets.
func replaceFile(name string, write func(io.Writer) error) (err error) {
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			file.Close()
			_ = os.Remove(file.Name()) // the error that led here says more
		}
	}()
	if err := write(file); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}
