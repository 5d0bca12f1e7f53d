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
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

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

// startProbed starts what a kind of stacks.c does in a thread that has come by a probe, and returns the distance of its
// addresses from those of the file.
func startProbed(t *testing.T, path, kind string) (pid uint32, bias uint64) {
	t.Helper()
	pid, start := startStacks(t, path, kind)
	return pid, start - testutil.Symbol(t, path, kind).Value
}

// An instruction that faults is at its address, also behind a byte that could be a breakpoint. Emulated processors
// leave out the flag that tells.
func TestFaultBehindBreakpointByte(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		return // an address is never behind a breakpoint there
	}
	const samples = 100    // of each
	const interrupted = 10 // of all: what is interrupted behind such a byte may have been stopped by it
	path := buildStacks(t)
	testutil.Probe(t, path, "once", 0)
	s := newSampler(t, Config{SamplesPerSecond: 9973, RingBufferBytes: 4 << 20})
	pid, bias := startProbed(t, path, "loads")
	first, second := testutil.Symbol(t, path, "load_twice").Value+bias, testutil.Symbol(t, path, "second_load").Value+bias
	caller := testutil.Symbol(t, path, "loads")
	loadRows(t, s, pid)
	require.NoError(t, s.Start())
	at := map[uint64]int{}
	readUntil(t, s, func(r *Record) bool {
		if r.PID != pid || len(r.KernelFrames) == 0 || len(r.UserFrames) == 0 {
			return false
		}
		leaf := r.UserFrames[0]
		if leaf-(first-1) > 1 && leaf-(second-1) > 1 {
			return false // something else has interrupted it
		}
		if at[leaf]++; leaf == second-1 && at[leaf] <= interrupted {
			return false
		}
		require.Contains(t, []uint64{first, second}, leaf, "%x", r.UserFrames)
		require.Equal(t, record.OutcomePresent, r.UserStack, "%x", r.UserFrames)
		require.Less(t, r.UserFrames[1]-1-bias-caller.Value, caller.Size, "%x", r.UserFrames)
		return at[first] >= samples && at[second] >= samples
	})
}

// The first instruction of a function behind padding is at its address, whatever has interrupted it.
func TestLeafBehindPadding(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		return
	}
	const enough = 20
	path := buildStacks(t)
	testutil.Probe(t, path, "once", 0)
	o := newOffCPU(t, OffCPUConfig{Threshold: 1, RingBufferBytes: 64 << 20})
	leaf := map[uint32]uint64{}
	for range 2 { // which take the CPU from each other
		pid, bias := startProbed(t, path, "stays_at_first")
		leaf[pid] = testutil.Symbol(t, path, "padded_loop").Value + bias
		var first unix.CPUSet
		first.Set(0)
		require.NoError(t, unix.SchedSetaffinity(int(pid), &first))
	}
	require.NoError(t, o.Start())
	for pid := range leaf {
		before := preemptions(t, pid)
		require.Eventually(t, func() bool { return preemptions(t, pid) > before+enough }, time.Minute, 10*time.Millisecond)
	}
	seen := 0
	drainSwitches(t, o, func(sw *Switch) {
		if sw.Back {
			return
		}
		var r Record
		require.NoError(t, r.Parse(append([]byte(nil), sw.Raw...)))
		if want := leaf[r.PID]; want != 0 && len(r.UserFrames) > 0 && r.UserFrames[0]-want+1 <= 1 {
			require.Equal(t, want, r.UserFrames[0])
			seen++
		}
	})
	require.GreaterOrEqual(t, seen, enough)
}

// preemptions returns how often a process has left the CPU though it could have gone on.
func preemptions(t *testing.T, pid uint32) (n int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, after, ok := strings.Cut(string(status), "nonvoluntary_ctxt_switches:")
	require.True(t, ok)
	_, err = fmt.Sscan(after, &n)
	require.NoError(t, err)
	return n
}

// A caller that is known for certain stays where the walk ends behind it.
func TestReturnProbeWithoutRows(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		return // frames by frame pointer are not doubted there
	}
	const samples = 20
	path := buildStacks(t)
	testutil.ProbeReturn(t, path, "bare_probed")
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	pid, start := startStacks(t, path, "calls_bare_probed")
	leaf := testutil.Symbol(t, path, "bare_probed").Value - testutil.Symbol(t, path, "calls_bare_probed").Value + start
	loadRows(t, s, pid)
	require.NoError(t, s.Start())
	n := 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != pid || len(r.KernelFrames) > 0 || r.UserFrames[0]-leaf >= stacksBytes {
			return false
		}
		require.Equal(t, record.OutcomeNoRows, r.UserStack, "%x", r.UserFrames)
		require.Len(t, r.UserFrames, 2, "%x", r.UserFrames)
		require.Less(t, r.UserFrames[1]-start, uint64(stacksBytes))
		n++
		return n == samples
	})
}

// What a signal's handler begins with is at its address, though the system call that it interrupts is not over: it has
// not made it. So is what a tracer has a thread go on with.
func TestLeafBehindSystemCall(t *testing.T) {
	path := buildStacks(t)
	goesOn := func(cmd *exec.Cmd) (at uint64) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
		require.NoError(t, cmd.Start())
		pid := cmd.Process.Pid
		stops := func(by syscall.Signal) {
			var status syscall.WaitStatus
			_, err := syscall.Wait4(pid, &status, 0, nil)
			require.NoError(t, err)
			require.True(t, status.Stopped(), "%x", status)
			require.Equal(t, by, status.StopSignal())
		}
		stops(syscall.SIGTRAP) // its exec
		require.NoError(t, syscall.PtraceSetOptions(pid, syscall.PTRACE_O_TRACESYSGOOD))
		var said [64]byte
		for n := 0; !bytes.Contains(said[:n], []byte("\n")); { // until it is past its start
			for range 2 { // into the system call, and behind it
				require.NoError(t, syscall.PtraceSyscall(pid, 0))
				stops(syscall.SIGTRAP | 0x80)
			}
			var polled [1]unix.PollFd
			polled[0] = unix.PollFd{Fd: int32(stdout.(*os.File).Fd()), Events: unix.POLLIN}
			if ready, _ := unix.Poll(polled[:], 0); ready > 0 {
				n, err = stdout.Read(said[:])
				require.NoError(t, err)
			}
		}
		_, err = fmt.Sscan(string(said[:]), new(int), &at)
		require.NoError(t, err)
		require.NoError(t, cmd.Process.Signal(syscall.SIGUSR1))
		var regs syscall.PtraceRegs
		require.NoError(t, syscall.PtraceGetRegs(pid, &regs))
		regs.SetPC(at)
		require.NoError(t, syscall.PtraceSetRegs(pid, &regs))
		require.NoError(t, syscall.PtraceCont(pid, 0))
		stops(syscall.SIGUSR1) // on its way out of the system call
		// A thread is said to stop before it leaves the CPU. ptrace waits for that (ptrace_check_attach, kernel/ptrace.c).
		require.NoError(t, syscall.PtraceGetRegs(pid, &regs))
		return at
	}
	o := newOffCPU(t, OffCPUConfig{Threshold: 1, RingBufferBytes: 64 << 20})
	require.NoError(t, o.Start())
	cmd := exec.Command(path, "calls")
	at := goesOn(cmd)
	pid := uint32(cmd.Process.Pid)
	var last Record
	drainSwitches(t, o, func(sw *Switch) {
		var r Record
		if !sw.Back {
			require.NoError(t, r.Parse(append([]byte(nil), sw.Raw...)))
		}
		if r.PID == pid {
			last = r
		}
	})
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed
	require.NotEmpty(t, last.UserFrames)
	require.Equal(t, at, last.UserFrames[0])
}
