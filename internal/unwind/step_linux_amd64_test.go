package unwind_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// program builds testdata/frames.c.
func program(t *testing.T, compiler string, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "frames")
	source := filepath.Join("testdata", "frames.c")
	args = append(args, "-O2", "-fomit-frame-pointer", "-o", out, source)
	text, err := exec.Command(compiler, args...).CombinedOutput()
	require.NoError(t, err, "%s", text)
	return out
}

// traced is a process that this thread traces.
type traced struct {
	t   *testing.T
	pid int
}

// trace starts a program and stops it at its first breakpoint.
func trace(t *testing.T, path string, args ...string) traced {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	p := traced{t, cmd.Process.Pid}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	require.Equal(t, unix.SIGTRAP, p.wait()) // exec
	p.run()
	return p
}

// run continues to the next breakpoint.
func (p traced) run() {
	p.t.Helper()
	signal := 0
	for {
		require.NoError(p.t, unix.PtraceCont(p.pid, signal))
		s := p.wait()
		if s == unix.SIGTRAP {
			return
		}
		signal = int(s)
	}
}

// wait returns the signal that stopped the process.
func (p traced) wait() unix.Signal {
	p.t.Helper()
	var status unix.WaitStatus
	_, err := unix.Wait4(p.pid, &status, 0, nil)
	require.NoError(p.t, err)
	require.True(p.t, status.Stopped(), "status %#x", status)
	return status.StopSignal()
}

func (p traced) registers() *registers {
	var r unix.PtraceRegs
	require.NoError(p.t, unix.PtraceGetRegs(p.pid, &r))
	return &registers{ip: r.Rip, known: true, general: [16]uint64{
		r.Rax, r.Rdx, r.Rcx, r.Rbx, r.Rsi, r.Rdi, r.Rbp, r.Rsp, r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15,
	}}
}

// The stack of a signal handler on a stack of its own, on top of a fault at a
// known depth, down to the entry of the program.
func TestStackOfSignalHandler(t *testing.T) {
	builds := map[string][]string{
		"gcc":        {"gcc"},
		"no-pie":     {"gcc", "-no-pie"},
		"static":     {"gcc", "-static"},
		"clang":      {"clang-19"},
		"lld":        {"clang-19", "-fuse-ld=lld"},
		"musl":       {"musl-gcc", "-DNO_SORT"},
		"muslstatic": {"musl-gcc", "-DNO_SORT", "-static"},
	}
	for name, build := range builds {
		t.Run(name, func(t *testing.T) {
			const depth = 500
			p := trace(t, program(t, build[0], build[1:]...), "fault", fmt.Sprint(depth))
			s := newSpace(t, p.pid)
			stack := s.unwind(p.registers())
			functions := s.functions(stack)
			require.Equal(t, []string{"on_fault"}, functions[:1])
			leaf := slices.Index(functions, "leaf")
			require.Equal(t, 2, leaf, "handler, trampoline, fault: %v", functions[:min(8, len(functions))])
			// What the program does, once more.
			want := []string{}
			for d := depth; d > 0; d-- {
				want = append(want, "recurse")
				if kind := map[int]string{1: "realigned", 3: "variable", 5: "both", 7: "pushing", 9: "compare"}[d%16]; kind != "" && (kind != "compare" || !strings.HasPrefix(name, "musl")) {
					if kind == "compare" {
						want = append(want, "sorted")
					}
					want = append(want, kind)
				}
			}
			want = append(want, "recurse")
			slices.Reverse(want)
			got := slices.DeleteFunc(slices.Clone(functions[leaf+1:]), func(f string) bool { return !slices.Contains(want, f) })
			require.Equal(t, want, got)
			main := slices.Index(functions, "main")
			require.Positive(t, main, "%v", functions[max(0, len(functions)-8):])
			if !strings.HasPrefix(name, "musl") {
				require.Equal(t, "_start", functions[len(functions)-1])
				require.True(t, s.ended, "%v", functions[max(0, len(functions)-8):])
			}
		})
	}
}

// At every instruction of a program, the return addresses are those of the
// instruction before: all, or without the first one, or with one more.
func TestEveryInstruction(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang-19"} {
		t.Run(compiler, func(t *testing.T) {
			p := trace(t, program(t, compiler), "walk")
			s := newSpace(t, p.pid)
			regs := p.registers()
			last := s.unwind(regs)[1:]
			main := slices.Index(s.functions(append([]uint64{regs.ip}, last...)), "main")
			require.Zero(t, main)
			seen := map[string]bool{}
			steps, compared := 0, 0
			for ; ; steps++ {
				require.NoError(t, unix.PtraceSingleStep(p.pid))
				require.Equal(t, unix.SIGTRAP, p.wait())
				from := regs.ip
				regs = p.registers()
				stack := s.unwind(regs)
				now := stack[1:]
				if s.lost {
					continue // in the dynamic loader, which keeps the stack pointer in rbx
				}
				require.True(t, s.ended, "after %d steps at %#x: %v", steps, regs.ip, s.functions(stack))
				switch {
				case slices.Equal(now, last):
				case len(last) > 0 && slices.Equal(now, last[1:]):
				case len(now) > 0 && slices.Equal(now[1:], last):
				default:
					require.Failf(t, "the stack changed", "after %d steps, from %#x to %#x:\n%v\n%v", steps, from, regs.ip,
						s.functions(append([]uint64{from}, last...)), s.functions(stack))
				}
				seen[s.function(regs.ip)] = true
				last = now
				compared++
				if s.word(regs.ip)&0xff == 0xcc {
					break
				}
			}
			t.Logf("%d of %d instructions, of %d functions", compared, steps, len(seen))
			for _, f := range []string{"recurse", "realigned", "variable", "both", "pushing", "sorted", "compare", "quiet"} {
				require.True(t, seen[f], "%s in %v", f, seen)
			}
		})
	}
}
