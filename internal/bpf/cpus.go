//go:build linux

package bpf

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	onlineCPUsPath   = "/sys/devices/system/cpu/online"
	possibleCPUsPath = "/sys/devices/system/cpu/possible"
	presentCPUsPath  = "/sys/devices/system/cpu/present"
	// leastRoom is for how many CPUs there is room at least, where so many may come.
	leastRoom = 16
	// maxCPUs bounds a list like "0-8191" (CONFIG_NR_CPUS).
	maxCPUs = 8192
)

// HostCPUs counts those of this host.
func HostCPUs() (CPUs, error) {
	var lists [3][]int
	for i, path := range []string{possibleCPUsPath, onlineCPUsPath, presentCPUsPath} {
		var err error
		if lists[i], err = readCPUs(path); err != nil {
			return CPUs{}, err
		}
	}
	return countCPUs(lists[0], lists[1], lists[2]), nil
}

func countCPUs(possible, online, present []int) CPUs {
	end := func(cpus []int) int { return slices.Max(append(cpus, 0)) + 1 }
	c := CPUs{Possible: end(possible), Online: len(online)}
	c.Room = min(c.Possible, max(2*end(present), leastRoom))
	return c
}

// onlineCPUs is the list of the CPUs that are online, read again and again.
type onlineCPUs struct {
	file *os.File // nil: not open yet
	text []byte
	last string // and what it says
	cpus []int
}

// read returns the list, which stays o's.
func (o *onlineCPUs) read() ([]int, error) {
	if o.file == nil {
		fd, err := unix.Open(onlineCPUsPath, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("open CPU list: %w", err)
		}
		o.file, o.text = os.NewFile(uintptr(fd), onlineCPUsPath), make([]byte, 4<<10)
	}
	// Nothing blocks: see package wakeup.
	n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, o.file.Fd(), uintptr(unsafe.Pointer(&o.text[0])), uintptr(len(o.text)), 0, 0, 0)
	if errno != 0 {
		return nil, fmt.Errorf("read CPU list: %w", errno)
	}
	if text := bytes.TrimSpace(o.text[:n]); o.cpus == nil || string(text) != o.last {
		cpus, err := parseCPUs(string(text))
		if err != nil {
			return nil, err
		}
		o.last, o.cpus = string(text), cpus
	}
	return o.cpus, nil
}

func (o *onlineCPUs) close() error {
	if o.file == nil {
		return nil
	}
	return o.file.Close()
}

func readCPUs(path string) ([]int, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read CPU list: %w", err)
	}
	return parseCPUs(strings.TrimSpace(string(b)))
}

// parseCPUs parses a CPU list such as "0-3,8,10-11".
func parseCPUs(list string) ([]int, error) {
	var cpus []int
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		lo, err := strconv.Atoi(from)
		if err != nil {
			return nil, fmt.Errorf("parse CPU list %q: %w", list, err)
		}
		hi, err := strconv.Atoi(to)
		if err != nil {
			return nil, fmt.Errorf("parse CPU list %q: %w", list, err)
		}
		if lo < 0 || hi < lo || hi >= maxCPUs {
			return nil, fmt.Errorf("parse CPU list %q: range out of bounds", list)
		}
		for c := lo; c <= hi; c++ {
			cpus = append(cpus, c)
		}
	}
	return cpus, nil
}
