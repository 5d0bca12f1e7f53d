// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock keeps a second writer away until the file is closed. A file system without locks
// has none.
func lock(file *os.File) error {
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return errLocked
	}
	return nil
}
