//go:build !linux

package procfs

// Thread is not known here.
func Thread() int { return 0 }

// Blocked cannot be told here.
func Blocked(int) bool { return true }
