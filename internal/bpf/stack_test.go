//go:build linux && (amd64 || arm64)

package bpf

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// userAddressEnd is the end of what a process can map that does not ask for more.
const userAddressEnd = 1 << 48

// in tells whether an address is in the function descend of a target.
func (tgt *target) in(addr uint64) bool {
	const longest = 512 // bytes
	return addr >= tgt.descend && addr < tgt.descend+longest
}

// ofProgram tells whether an address is in the program of a target, not in a library.
func (tgt *target) ofProgram(addr uint64) bool {
	const longest = 1 << 16 // bytes
	return addr > tgt.descend-longest && addr < tgt.descend+longest
}

// signsReturnAddresses tells whether this CPU has pointer authentication.
func signsReturnAddresses(t *testing.T) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/cpuinfo")
	require.NoError(t, err)
	return runtime.GOARCH == "arm64" && strings.Contains(string(b), " paca ")
}

// A recursion of known depth: every frame of it, up to the bound. On a CPU with
// pointer authentication the same return address has another code in each frame,
// which is not part of it.
func TestUserStackDepth(t *testing.T) {
	program := buildTarget(t)
	signs := signsReturnAddresses(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Start())
	for _, tc := range []struct{ depth, frames int }{{1, 1}, {50, 50}, {500, 500}, {2000, record.MaxUserFrames - 1}} {
		t.Run(fmt.Sprint(tc.depth), func(t *testing.T) {
			tgt := startTarget(t, program, fmt.Sprintf("depth-%d", tc.depth))
			if signs {
				// a code is 0 by chance now and then
				require.GreaterOrEqual(t, tgt.signedFrames, tc.depth*3/4)
				fmt.Printf("signed return addresses: %d of %d\n", tgt.signedFrames, tc.depth+1)
			} else {
				require.Zero(t, tgt.signedFrames)
			}
			var down unix.Timespec // it has printed, so it is at the end of its way
			require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &down))
			readUntil(t, s, func(r *Record) bool {
				if r.PID != tgt.pid || r.TimeNs < uint64(down.Nano()) {
					return false
				}
				// While it returns from printing, frames are those of libc, which has no frame pointers.
				if len(r.KernelFrames) > 0 || !tgt.in(r.UserFrames[0]) {
					return false
				}
				same := 0
				for _, addr := range r.UserFrames[1:] {
					require.Less(t, addr, uint64(userAddressEnd))
					if addr == r.UserFrames[1] {
						same++
					}
				}
				require.Equal(t, tc.frames, same)
				require.Equal(t, tc.depth > record.MaxUserFrames, r.UserStack == record.OutcomeTruncated)
				return true
			})
		})
	}
}

// A thread inside the kernel has both stacks.
func TestKernelStack(t *testing.T) {
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	tgt := startTarget(t, program, "in-kernel")
	require.NoError(t, s.Start())
	readUntil(t, s, func(r *Record) bool {
		if r.PID != tgt.pid || len(r.KernelFrames) == 0 {
			return false
		}
		for _, addr := range r.KernelFrames {
			require.Greater(t, addr, uint64(1)<<63)
		}
		require.NotEmpty(t, r.UserFrames)
		for _, addr := range r.UserFrames {
			require.Less(t, addr, uint64(1)<<56)
		}
		if len(r.KernelFrames) < 3 { // it has just come, or is about to go
			return false
		}
		require.Equal(t, record.OutcomePresent, r.KernelStack)
		for _, name := range []string{"vfs_read", "ksys_read"} {
			if !slices.ContainsFunc(r.KernelFrames, kernelFunctions(t, name)) {
				return false
			}
		}
		return true
	})
}

// One with more frames than the kernel gives is marked as cut.
func TestKernelStackCut(t *testing.T) {
	program := buildTarget(t)
	const frames = 2
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20, maxKernelFrames: frames})
	tgt := startTarget(t, program, "in-kernel")
	require.NoError(t, s.Start())
	readUntil(t, s, func(r *Record) bool {
		if r.PID != tgt.pid || len(r.KernelFrames) < frames {
			return false
		}
		require.Len(t, r.KernelFrames, frames)
		require.Equal(t, record.OutcomeTruncated, r.KernelStack)
		require.NotEmpty(t, r.UserFrames)
		return true
	})
}

// A frame pointer of 0 ends a stack where all code is known to have frame pointers, or is
// taken to have them, and only there: where some code has rows, the outermost function has.
func TestStackEndsAtZero(t *testing.T) {
	t.Run("rows", func(t *testing.T) { endAtZero(t, false) })
	t.Run("frame pointers only", func(t *testing.T) { endAtZero(t, true) })
}

func endAtZero(t *testing.T, framePointersOnly bool) {
	t.Helper()
	program := buildStacks(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20, FramePointersOnly: framePointersOnly})
	require.NoError(t, s.Start())
	maker, start := startStacks(t, program, "forked")
	var child record.ProcessID
	outcome := func(after int64) (out record.Outcome) {
		readUntil(t, s, func(r *Record) bool {
			if r.TID == maker || r.TimeNs < uint64(after) || len(r.UserFrames) < 3 || r.UserFrames[0]-start >= stacksBytes {
				return false
			}
			child, out = r.Process, r.UserStack
			return true
		})
		return out
	}
	if framePointersOnly {
		require.Equal(t, record.OutcomePresent.String(), outcome(0).String())
		return
	}
	require.Equal(t, record.OutcomeNoRows.String(), outcome(0).String())
	elsewhere := []record.UnwindMapping{{Start: 1 << 16, Limit: 1 << 17}}
	for _, tc := range []struct {
		mappings []record.UnwindMapping
		want     record.Outcome
	}{{nil, record.OutcomePresent}, {elsewhere, record.OutcomeNoRows}} {
		require.NoError(t, s.SetUnwindMappings(child, tc.mappings, execPages(t, child.TGID)))
		var now unix.Timespec
		require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
		require.Equal(t, tc.want.String(), outcome(now.Nano()).String(), "rows of %d mappings", len(tc.mappings))
	}
}

// A handler's callers are what the kernel made for the signal, and the code that the
// signal interrupted: neither has called anything, and so their addresses are marked. What a
// handler returns to is in the C library, on aarch64 in the vDSO: by the list of what a
// process maps, and without one, by its files.
func TestSignalStack(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	program := buildTargetWith(t, "-fomit-frame-pointer", "-momit-leaf-frame-pointer")
	listed := startTarget(t, program, "handler-50")
	loadRows(t, s, listed.pid)
	require.NoError(t, s.Start())
	requireHandlerStack(t, s, &listed)
	if s.CanNameFiles() {
		other := startTarget(t, program, "handler-50")
		requireHandlerStack(t, s, &other)
	}
}

// What a signal has interrupted has the registers that the kernel saved for it, not those of its handler.
func TestSignalRegisters(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("rules refer to other registers on x86-64 only")
	}
	const depth = 50
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	program := buildTarget(t)
	r := &recursion{s: s, program: program, target: startTarget(t, program, fmt.Sprintf("handler-%d", depth))}
	r.id = identify(t, s, r.pid)
	mappings := loadRowsBut(t, s, r.pid, program)
	require.NoError(t, s.Start())
	inHandler := func(frames []uint64) bool { return len(frames) > 2 && r.ofProgram(frames[0]) && !r.in(frames[0]) }
	var interrupted uint64
	readUntil(t, s, func(rec *Record) bool {
		if rec.PID != r.pid || len(rec.KernelFrames) > 0 || !inHandler(rec.UserFrames) || r.ofProgram(rec.UserFrames[1]) {
			return false
		}
		interrupted = rec.UserFrames[2] - 1
		return r.in(interrupted)
	})
	byFP := record.UnwindRule{CFA: record.CFAFP, CFAOffset: 16, RAOffset: -8, FP: record.FPOffset, FPOffset: -16}
	byRegister := byFP
	byRegister.CFA, byRegister.Arg = record.CFAReg, 6 // RBP
	const around = 8
	base := (r.descend/record.UnwindBlockBytes - around) * record.UnwindBlockBytes
	own := r.table(t, base, 2*around, []record.UnwindRule{{}, byFP, byRegister}, []span{{base, 1}, {interrupted, 2}, {interrupted + 1, 1}})
	mappings = append(mappings, own)
	slices.SortFunc(mappings, func(a, b record.UnwindMapping) int { return cmp.Compare(a.Start, b.Start) })
	require.NoError(t, s.SetUnwindMappings(r.id, mappings, execPages(t, r.pid)))
	var now unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	readUntil(t, s, func(rec *Record) bool {
		if rec.PID != r.pid || rec.TimeNs < uint64(now.Nano()) || len(rec.KernelFrames) > 0 || !inHandler(rec.UserFrames) {
			return false
		}
		frames := 0
		for _, addr := range rec.UserFrames {
			if r.in(addr) {
				frames++
			}
		}
		require.Equal(t, depth+1, frames, "%#x", rec.UserFrames)
		return true
	})
}

// A handler whose code has no rows is left by its frame pointer. On aarch64 that does not say where its
// stack pointer is: then the registers that the kernel has saved are not looked for, and the frame pointer
// goes on, to what the interrupted function returns to.
func TestSignalStackWithoutRows(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	program := buildTarget(t)
	tgt := startTarget(t, program, "caller-50")
	loadRowsBut(t, s, tgt.pid, program)
	require.NoError(t, s.Start())
	readUntil(t, s, func(r *Record) bool {
		handler := func(addr uint64) bool { return tgt.ofProgram(addr) && !tgt.in(addr) }
		if r.PID != tgt.pid || len(r.KernelFrames) > 0 || len(r.UserFrames) == 0 || !handler(r.UserFrames[0]) {
			return false
		}
		above := slices.IndexFunc(r.UserFrames, func(addr uint64) bool { return !handler(addr) })
		if above < 0 || tgt.ofProgram(r.UserFrames[above]) {
			return false // it prints
		}
		own := 0
		for _, addr := range r.UserFrames[above+1:] {
			if !tgt.in(addr) {
				break
			}
			own++
		}
		require.Contains(t, []int{50, 51}, own, "all that descend has called, one after the other")
		return true
	})
}

// requireHandlerStack waits for the stack of a target in a handler on top of 50 frames.
func requireHandlerStack(t *testing.T, s *Sampler, tgt *target) {
	t.Helper()
	const depth = 50
	// What is at both: the call that ends a handler, and behind it the call that was interrupted.
	ends := map[string][]byte{"amd64": {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0}, "arm64": {0x68, 0x11, 0x80, 0xd2}}[runtime.GOARCH]
	interrupted := map[string][]byte{"amd64": {0x0f, 0x05}, "arm64": {0x01, 0, 0, 0xd4}}[runtime.GOARCH]
	readUntil(t, s, func(r *Record) bool {
		if r.PID != tgt.pid || len(r.KernelFrames) > 0 || len(r.UserFrames) < 3 {
			return false
		}
		// It may still be printing: only a handler is the program's and called by what is not.
		leaf, caller := r.UserFrames[0], r.UserFrames[1]
		if tgt.in(leaf) || !tgt.ofProgram(leaf) || tgt.ofProgram(caller) || !tgt.in(r.UserFrames[2]) {
			return false
		}
		require.Equal(t, record.OutcomePresent.String(), r.UserStack.String())
		own := 0
		for _, addr := range r.UserFrames {
			if tgt.in(addr) {
				own++
			}
		}
		require.Equal(t, depth+1, own)
		require.Greater(t, len(r.UserFrames), depth+4, "main and its callers")
		require.Equal(t, ends, textOf(t, tgt.pid, r.UserFrames[1]-1, len(ends)))
		require.Equal(t, interrupted, textOf(t, tgt.pid, r.UserFrames[2]-1-uint64(len(interrupted)), len(interrupted)))
		return true
	})
}

// textOf reads a process's memory.
func textOf(t *testing.T, pid uint32, addr uint64, n int) []byte {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	require.NoError(t, err)
	defer f.Close()
	b := make([]byte, n)
	_, err = f.ReadAt(b, int64(addr))
	require.NoError(t, err)
	return b
}
