// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"fmt"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// MustRunEnv set to 1 says that this machine can run everything: a test that would
// be skipped fails instead.
const MustRunEnv = "CUSTOM_LABELS_MUST_RUN"

// RequireBPF skips a test on a machine where the process may not load BPF programs
// or sample the whole system. See MustRunEnv.
func RequireBPF(t testing.TB) {
	t.Helper()
	if err := probeBPF(); err != nil {
		skip(t, err)
	}
}

// RequireRoot skips a test that is not run by root. See MustRunEnv.
func RequireRoot(t testing.TB) {
	t.Helper()
	if uid := os.Geteuid(); uid != 0 {
		skip(t, fmt.Errorf("needs root, this is uid %d", uid))
	}
}

func skip(t testing.TB, reason error) {
	t.Helper()
	if os.Getenv(MustRunEnv) == "1" {
		t.Fatalf("%v (%s=1: not skipped)", reason, MustRunEnv)
	}
	t.Skipf("%v (%s=1 makes this a failure)", reason, MustRunEnv)
}

func probeBPF() error {
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		return fmt.Errorf("kernel types: %w", err)
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type:         ebpf.PerfEvent,
		License:      "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return fmt.Errorf("load a BPF program: %w", err)
	}
	program.Close()
	attr := &unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Sample: 1e9}
	fd, err := unix.PerfEventOpen(attr, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("open a perf event of the whole system: %w", err)
	}
	return unix.Close(fd)
}
