// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"errors"
	"fmt"
	"os"
)

// errLocked says that somebody else writes the file.
var errLocked = errors.New("another labelprof serve writes it")

// OTLPFile is the file of received requests.
type OTLPFile struct {
	*os.File
	regular bool  // no terminal, no pipe
	whole   int64 // bytes of requests since Begin, none of them cut
}

// CreateOTLP opens the file of received requests, or makes it, and leaves what is in it. It fails
// where another process has it open like this.
func CreateOTLP(name string) (*OTLPFile, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	f := &OTLPFile{File: file}
	if info, err := file.Stat(); err == nil {
		f.regular = info.Mode().IsRegular()
	}
	if f.regular {
		if err := lock(file); err != nil {
			file.Close()
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
	}
	return f, nil
}

// Begin empties the file, which from then on only its owner may read, also where one was
// there. A terminal or a pipe stays as it is.
func (f *OTLPFile) Begin() error {
	if !f.regular {
		return nil
	}
	if err := f.Chmod(0o600); err != nil {
		return err
	}
	return f.Truncate(0)
}

// Write writes one request. Where it cannot write all of it, a regular file ends with the request
// before: what is cut, its readers could only leave out.
func (f *OTLPFile) Write(request []byte) (int, error) {
	n, err := f.File.Write(request)
	if err == nil {
		f.whole += int64(n)
		return n, nil
	}
	if f.regular {
		err = errors.Join(err, f.Truncate(f.whole))
	}
	return n, err
}
