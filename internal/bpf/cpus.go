//go:build linux

package bpf

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

const (
	onlineCPUsPath   = "/sys/devices/system/cpu/online"
	possibleCPUsPath = "/sys/devices/system/cpu/possible"
	// maxCPUs bounds a list like "0-8191" (CONFIG_NR_CPUS).
	maxCPUs = 8192
)

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
