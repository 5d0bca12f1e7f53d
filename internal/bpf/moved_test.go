//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Code that a process has moved over other code, of which no event tells, is not walked by
// the rows of what was there.
func TestMovedCode(t *testing.T) {
	program := filepath.Join(t.TempDir(), "moved")
	b, err := exec.Command("gcc", "-O1", "-o", program, "../../testdata/bpf/moved.c").CombinedOutput()
	require.NoError(t, err, "%s", b)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	var pid uint32
	var start, bytes, wrong uint64
	_, err = fmt.Sscan(startProgram(t, program, ""), &pid, &start, &bytes, &wrong)
	require.NoError(t, err)
	// By these rows, what is on top of the stack is a return address.
	table := &record.UnwindTable{
		Rules: []record.UnwindRule{{}, {CFA: record.CFASP, CFAOffset: 16, RAOffset: -16}},
		Rows:  []record.UnwindRow{1 << 16}, Index: make([]uint32, bytes/record.UnwindBlockBytes+1),
	}
	for i := range table.Index[1:] {
		table.Index[i+1] = 1
	}
	rows, err := s.AddUnwindTable(table)
	require.NoError(t, err)
	list := []record.UnwindMapping{{Start: start, Limit: start + bytes, Text: start, Table: rows, Blocks: uint32(table.Blocks())}}
	require.NoError(t, s.SetUnwindMappings(identify(t, s, pid), list, execPages(t, pid)))
	require.NoError(t, s.Start())
	moved := func(walked bool) {
		t.Helper()
		seen := 0
		readUntil(t, s, func(r *Record) bool {
			if r.PID != pid || len(r.KernelFrames) > 0 || r.UserFrames[0]-start >= bytes {
				return false
			}
			require.Equal(t, walked, len(r.UserFrames) > 1 && r.UserFrames[1] == wrong, "%#x", r.UserFrames)
			seen++
			return seen == samplesPerState
		})
	}
	require.NoError(t, unix.Kill(int(pid), unix.SIGUSR1))
	moved(false)
	// They would say so, if they held.
	require.NoError(t, s.SetUnwindMappings(identify(t, s, pid), list, execPages(t, pid)))
	drained := false
	readUntil(t, s, func(r *Record) bool {
		drained = r.PID == pid && len(r.UserFrames) > 1 && r.UserFrames[1] == wrong
		return drained
	})
	moved(true) // The same list, which has just been used, does not hold with other pages.
	id := identify(t, s, pid)
	var held record.ProcessEntry
	require.NoError(t, s.objs.Processes.Lookup(&id, &held))
	for i := range 100 { // whoever else is sampled in between takes the place of what is kept
		other := held
		other.ExecPages += uint64(i % 2)
		sealProcess(&id, &other)
		require.NoError(t, s.objs.Processes.Put(&id, &other))
		var now unix.Timespec
		require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
		readUntil(t, s, func(r *Record) bool {
			if r.PID != pid || r.TimeNs < uint64(now.Nano()) || len(r.KernelFrames) > 0 || r.UserFrames[0]-start >= bytes {
				return false
			}
			require.Equal(t, i%2 == 0, len(r.UserFrames) > 1 && r.UserFrames[1] == wrong, "%#x", r.UserFrames)
			return true
		})
	}
}
