// SPDX-License-Identifier: Apache-2.0

package sink

import "os"

// CreateOTLP makes the file of received requests, which only its owner may read, also where
// one was there. A terminal or a pipe stays as it is.
func CreateOTLP(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() { // no terminal, no pipe
		if err := file.Chmod(0o600); err != nil {
			file.Close()
			return nil, err
		}
	}
	return file, nil
}
