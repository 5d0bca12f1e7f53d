//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

var mounts = [...]struct{ source, target, kind string }{
	{"proc", "/proc", "proc"},
	{"sys", "/sys", "sysfs"},
	{"dev", "/dev", "devtmpfs"},
	{"tracefs", "/sys/kernel/tracing", "tracefs"},
	{"debugfs", "/sys/kernel/debug", "debugfs"},
	{"bpf", "/sys/fs/bpf", "bpf"},
	{"cgroup2", "/sys/fs/cgroup", "cgroup2"},
	{"securityfs", "/sys/kernel/security", "securityfs"},
	{"tmp", "/tmp", "tmpfs"},
	{"run", "/run", "tmpfs"},
	{"shm", "/dev/shm", "tmpfs"},
}

// mountAll leaves the first root file system for a bind mount of it, because pivot_root
// refuses to work on the first, and mounts what programs expect on top.
func mountAll() error {
	if err := syscall.Mount("/", "/.root", "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind the root: %w", err)
	}
	if err := os.Chdir("/.root"); err != nil {
		return err
	}
	if err := syscall.Mount(".", "/", "", syscall.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the root: %w", err)
	}
	if err := syscall.Chroot("."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	for _, m := range &mounts {
		if strings.HasPrefix(m.target, "/dev/") {
			if err := os.MkdirAll(m.target, 0o1777); err != nil {
				return err
			}
		}
		// A kernel may lack one that the programs don't need.
		if err := syscall.Mount(m.source, m.target, m.kind, 0, ""); err != nil {
			fmt.Printf("guestinit: mount %s: %v\n", m.target, err)
		}
	}
	return nil
}
