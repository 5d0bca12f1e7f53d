//go:build !linux

package procfs

import (
	"io"
	"os"
)

// open opens a file of a process for reading.
func (f FS) open(pid int, name string) (*os.File, error) {
	file, err := os.Open(f.path(pid, name))
	return file, gone(err)
}

// read returns at most limit bytes of a file of a process and whether there are more.
func (f FS) read(pid int, name string, limit int, _ []byte) (data []byte, more bool, err error) {
	file, err := f.open(pid, name)
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	data, err = io.ReadAll(io.LimitReader(file, int64(limit)+1))
	if err != nil {
		return nil, false, gone(err)
	}
	if len(data) > limit {
		return data[:limit], true, nil
	}
	return data, false, nil
}
