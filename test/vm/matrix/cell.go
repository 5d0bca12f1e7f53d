//go:build linux

package main

import (
	"fmt"
	"strings"
)

// A cell is one guest.
type cell struct {
	kernel  string // as in the table
	series  string // of fetch.sh
	arch    string
	variant string // of the name, may be empty
	cpu     string // qemu's model; empty: run.sh's choice
	// What makes it this cell.
	pageSize int
	says     string // text that its output has
	older    bool   // it gets the objects for older kernels
	thorough bool   // it also runs what takes long
	stacks   bool   // it checks whole stacks, those of Node.js, Java and Python too: on aarch64, with pointer authentication and without
	java     int    // a newer JVM whose stacks it checks, besides 17
	nobody   bool   // it runs the receiver as a user with the documented capabilities
	quick    bool   // it only runs the states of labels, and loads the programs
	mayCome  int    // CPUs that the guest may have, of which it has two
}

const (
	page4K  = 4 << 10
	page16K = 16 << 10
)

// marksAccesses is a CPU that marks a page as accessed by itself, as those of today's aarch64 servers do. Another one
// leaves that to the kernel, which cannot be done while BPF reads: see docs/limits.md.
const marksAccesses = "cortex-a76"

// cells in the order in which they run: what boots fastest and fails most easily first.
func cells() []cell {
	all := []cell{
		{kernel: "5.10", series: "5.10", older: true, thorough: true},
		{kernel: "6.1", series: "6.1", thorough: true},
		{kernel: "6.1", series: "6.1", arch: "arm64", variant: "pac", cpu: "max,pauth-impdef=on",
			says: "signed return addresses: ", stacks: true, java: 25},
		{kernel: "6.12", series: "6.12", arch: "amd64"},
		{kernel: "6.12", series: "6.12", arch: "arm64", cpu: marksAccesses, stacks: true, java: 21},
		{kernel: "6.1", series: "6.1", arch: "amd64", variant: "128cpus", mayCome: 128, says: "128 possible CPUs, 2 online"},
		{kernel: "6.12", series: "6.12-16k", arch: "arm64", pageSize: page16K},
		{kernel: "newest", series: "newest", thorough: true, nobody: true,
			says: "CAP_SYS_ADMIN, which kernel.perf_event_paranoid=3 asks for"},
	}
	var split []cell
	for _, c := range all {
		if c.pageSize == 0 {
			c.pageSize = page4K
		}
		if c.arch != "" {
			split = append(split, c)
			continue
		}
		for _, arch := range architectures {
			c.arch = arch
			split = append(split, c)
			split[len(split)-1].stacks = c.stacks && arch == "arm64" // the other is tested natively
		}
	}
	return split
}

var architectures = [...]string{"amd64", "arm64"}

func (c *cell) name() string {
	name := c.arch + "-" + c.series
	if c.variant != "" {
		name += "-" + c.variant
	}
	return name
}

// row is the cell's row in the table.
func (c *cell) row() string {
	switch {
	case c.variant == "pac":
		return c.kernel + ", pointer authentication"
	case c.mayCome != 0:
		return fmt.Sprintf("%s, %d CPUs may come", c.kernel, c.mayCome)
	case c.pageSize != page4K:
		return fmt.Sprintf("%s, %d KiB pages", c.kernel, c.pageSize>>10)
	}
	return c.kernel
}

// choose returns the cells of the given names, all when there are none.
func choose(names []string) ([]cell, error) {
	all := cells()
	if len(names) == 0 {
		return all, nil
	}
	var known []string
	byName := map[string]cell{}
	for _, c := range all {
		known = append(known, c.name())
		byName[c.name()] = c
	}
	var chosen []cell
	for _, name := range names {
		c, ok := byName[name]
		if !ok {
			return nil, fmt.Errorf("no cell %q: %s", name, strings.Join(known, " "))
		}
		chosen = append(chosen, c)
	}
	return chosen, nil
}
