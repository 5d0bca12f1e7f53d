package procfs

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Thread is the id of the calling thread.
func Thread() int { return unix.Gettid() }

// Blocked reports whether a thread of this process waits in the kernel for something else than a
// CPU or for another one of ours: Go's scheduler and locks wait by futex.
func Blocked(tid int) bool {
	call, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/syscall", tid))
	if err != nil {
		return true // it has gone, or the kernel does not tell
	}
	number, _, _ := strings.Cut(strings.TrimSpace(string(call)), " ")
	return number != "running" && number != strconv.Itoa(unix.SYS_FUTEX)
}
