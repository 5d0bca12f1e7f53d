//go:build linux && (amd64 || arm64)

package bpf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// A function for whose return somebody waits has its caller all the same, and nothing in its place.
func TestReturnProbes(t *testing.T) {
	const samples = 300
	path := buildStacks(t)
	for _, name := range []string{"probed", "probed_too"} {
		testutil.ProbeReturn(t, path, name)
	}
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	pid, start := startStacks(t, path, "calls")
	bias := start - testutil.Symbol(t, path, "calls").Value
	var functions []elf.Symbol
	for _, name := range []string{"innermost", "probed", "between", "probed_too", "outermost", "calls"} {
		functions = append(functions, testutil.Symbol(t, path, name))
	}
	const ends = 16 // bytes where the innermost makes its frame, or has left it
	leaf := functions[0]
	require.NoError(t, s.Start())
	whole, others := 0, 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != pid {
			return false
		}
		// What the kernel does for the probes is not looked at.
		if len(r.KernelFrames) > 0 || r.UserFrames[0]-bias-leaf.Value-ends >= leaf.Size-2*ends {
			others++
			require.Less(t, others, 100*samples, "%x", r.UserFrames)
			return false
		}
		require.GreaterOrEqual(t, len(r.UserFrames), len(functions), "%x", r.UserFrames)
		for i, f := range functions {
			require.Less(t, r.UserFrames[i]-1-bias-f.Value, f.Size, "frame %d of %x is not in %s", i, r.UserFrames, f.Name)
		}
		whole++
		return whole == samples
	})
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(maps), "[uprobes]"), "returns were replaced")
	t.Logf("%d stacks were looked at, %d others were not", whole, others)
}

// An instruction that is probed runs in memory of the kernel's: its sample has the place in the program.
func TestProbedInstruction(t *testing.T) {
	const samples = 300 // in the kernel, which is mostly for the probe
	path := buildStacks(t)
	testutil.Probe(t, path, "often", map[string]uint64{"amd64": 1, "arm64": 4}[runtime.GOARCH]) // what sets the frame pointer
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	pid, start := startStacks(t, path, "calls_often")
	bias := start - testutil.Symbol(t, path, "calls_often").Value
	often, calls := testutil.Symbol(t, path, "often"), testutil.Symbol(t, path, "calls_often")
	require.NoError(t, s.Start())
	probed := 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != pid || len(r.KernelFrames) == 0 {
			return false
		}
		at := r.UserFrames[0] - bias
		require.True(t, at-often.Value < often.Size || at-calls.Value < calls.Size, "%x", r.UserFrames)
		probed++
		return probed == samples
	})
}

// endsAtOnce makes a program whose first instructions end it, and returns where it begins.
func endsAtOnce(t *testing.T) (path string, entry uint64) {
	t.Helper()
	const base, head = 0x400000, 64 + 56
	machine, code := elf.EM_X86_64, []byte{
		0xb8, 60, 0, 0, 0, // mov $60, %eax
		0x31, 0xff, // xor %edi, %edi
		0x0f, 0x05, // syscall
	}
	if runtime.GOARCH == "arm64" {
		machine, code = elf.EM_AARCH64, []byte{
			0xa8, 0x0b, 0x80, 0xd2, // mov x8, #93
			0x00, 0x00, 0x80, 0xd2, // mov x0, #0
			0x01, 0x00, 0x00, 0xd4, // svc #0
		}
	}
	var b bytes.Buffer
	size := uint64(head + len(code))
	for _, part := range []any{
		&elf.Header64{
			Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
			Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: 1, Entry: base + head, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
		},
		&elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: base, Filesz: size, Memsz: size, Align: 1 << 16},
		code,
	} {
		require.NoError(t, binary.Write(&b, binary.LittleEndian, part))
	}
	path = filepath.Join(t.TempDir(), "ends")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o700))
	return path, base + head
}

// When a program begins, the kernel still has the number of execve, but no instruction is before the first one.
func TestLeafAtTheBeginning(t *testing.T) {
	const enough = 20
	path, entry := endsAtOnce(t)
	s := newSampler(t, Config{SamplesPerSecond: 9973, RingBufferBytes: 4 << 20})
	require.NoError(t, s.Start())
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
				if err := exec.Command(path).Run(); err != nil {
					done <- err
					return
				}
			}
		}
	}()
	at := map[uint64]int{}
	readUntil(t, s, func(r *Record) bool {
		if len(r.KernelFrames) > 0 && r.UserStack != record.OutcomeNone && len(r.UserFrames) > 0 && entry-r.UserFrames[0] <= 1 {
			at[r.UserFrames[0]]++
		}
		return at[entry]+at[entry-1] >= enough
	})
	close(stop)
	require.NoError(t, <-done)
	require.Zero(t, at[entry-1], "%v", at)
}
