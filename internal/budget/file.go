package budget

import (
	"errors"
	"time"
)

// MaxFileTime is the CPU time after which the reading of one file ends. The largest
// programs take a few seconds.
const MaxFileTime = 20 * time.Second

// ErrFileTime says that the reading of a file has taken MaxFileTime.
var ErrFileTime = errors.New("reading the file takes too much CPU time")

// FilePace returns what is to be called again and again while one file is read: an
// ErrFileTime once that has taken MaxFileTime. cpuTime is the CPU time of the thread that
// reads, in ns.
func FilePace(cpuTime func() int64) func() error {
	began := cpuTime()
	return func() error {
		if cpuTime()-began > int64(MaxFileTime) {
			return ErrFileTime
		}
		return nil
	}
}
