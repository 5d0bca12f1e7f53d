//go:build !linux

package symbol

import "time"

// threadTime is the time that the calling thread has had, or more.
func threadTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
