//go:build linux && (amd64 || arm64)

package labelread

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program is a running test program; say gives it a line, line takes one.
type program struct {
	*exec.Cmd
	t   *testing.T
	in  *os.File
	out *bufio.Reader
}

func (p *program) line() int {
	p.t.Helper()
	s, err := p.out.ReadString('\n')
	require.NoError(p.t, err)
	n, err := strconv.Atoi(strings.TrimSpace(s))
	require.NoError(p.t, err)
	return n
}

func (p *program) ask() int {
	p.t.Helper()
	_, err := p.in.WriteString("x")
	require.NoError(p.t, err)
	return p.line()
}

// run compiles and starts a C program until the end of the test. Its main
// prints a number when it is ready.
func run(t *testing.T, body string) *program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p")
	require.NoError(t, os.WriteFile(path+".c", []byte(common+body), 0o644))
	msg, err := exec.Command("gcc", "-O1", "-Wall", "-pthread", "-o", path, path+".c").CombinedOutput()
	require.NoError(t, err, "%s", msg)
	p := &program{Cmd: exec.Command(path), t: t}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	p.in, p.Stdin, p.Stderr = w, r, os.Stderr
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	r.Close()
	p.out = bufio.NewReader(out)
	t.Cleanup(func() {
		w.Close()
		p.Process.Kill()
		p.Wait()
	})
	p.line()
	return p
}

const common = `
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static void say(long n) { printf("%ld\n", n); fflush(stdout); }
static int asked(void) { char c; return read(0, &c, 1) == 1; }
`

func state(t *testing.T, pid int) byte {
	t.Helper()
	st, err := procfs.FS{}.Stat(pid)
	require.NoError(t, err)
	return st.State
}

// requireFree waits until a thread is not traced any more.
func requireFree(t *testing.T, tid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		st, err := procfs.FS{}.Status(tid)
		return err == nil && st.TracerPID == 0
	}, time.Minute, time.Millisecond)
}

func TestStopRunningThread(t *testing.T) {
	p := run(t, `
		static volatile unsigned long counter;
		static void *count(void *x) { for (;;) counter++; return x; }
		int main(void) {
			pthread_t t; pthread_create(&t, 0, count, 0); say(0);
			while (asked()) say((long)(counter & 0x7fffffffffff));
			return 0;
		}`)
	var tid int
	require.Eventually(t, func() bool {
		tids, _, err := procfs.FS{}.Threads(p.Process.Pid, 10)
		require.NoError(t, err)
		tid = slices.Max(tids)
		return len(tids) == 2
	}, time.Minute, time.Millisecond)
	var stood []time.Duration
	for range 100 {
		visited := false
		d, err := Stop(p.Process.Pid, tid, func(s Stopped) {
			visited = true
			require.NotZero(t, s.ThreadPointer)
			require.EqualValues(t, 't', state(t, tid))
		})
		require.NoError(t, err)
		require.True(t, visited)
		require.Positive(t, d)
		stood = append(stood, d)
	}
	slices.Sort(stood)
	t.Logf("stood still: median %v, 90 %% below %v", stood[50], stood[90])
	requireFree(t, tid)
	before := p.ask()
	require.Eventually(t, func() bool { return p.ask() > before }, time.Minute, time.Millisecond, "it goes on")
}

// While a thread is stopped its memory is its own: the counter doesn't move.
func TestStoppedThreadStands(t *testing.T) {
	p := run(t, `
		static volatile unsigned long counter;
		int main(void) { say(0); say((long)&counter); for (;;) counter++; }`)
	addr, pid := uint64(p.line()), p.Process.Pid
	read := func() string {
		b := make([]byte, 8)
		require.NoError(t, procfs.Memory{PID: pid}.ReadAt(b, addr))
		return string(b)
	}
	_, err := Stop(pid, pid, func(Stopped) {
		first := read()
		time.Sleep(20 * time.Millisecond)
		require.Equal(t, first, read())
	})
	require.NoError(t, err)
	first := read()
	require.Eventually(t, func() bool { return read() != first }, time.Minute, time.Millisecond)
}

func TestStopKeepsGroupStop(t *testing.T) {
	p := run(t, `int main(void) { say(0); while (asked()) say(1); return 0; }`)
	pid := p.Process.Pid
	require.NoError(t, unix.Kill(pid, unix.SIGSTOP))
	require.Eventually(t, func() bool { return state(t, pid) == 'T' }, time.Minute, time.Millisecond)
	for range 20 {
		_, err := Stop(pid, pid, func(s Stopped) { require.NotZero(t, s.ThreadPointer) })
		require.NoError(t, err)
		require.Eventually(t, func() bool { return state(t, pid) == 'T' }, time.Minute, time.Millisecond)
		requireFree(t, pid)
	}
	time.Sleep(10 * time.Millisecond)
	require.EqualValues(t, 'T', state(t, pid), "and stays there")
	require.NoError(t, unix.Kill(pid, unix.SIGCONT))
	require.Equal(t, 1, p.ask())
}

const counting = `
	static volatile sig_atomic_t caught;
	static void note(int s) { caught++; }
	int main(void) {
		struct sigaction a = { .sa_handler = note, .sa_flags = SA_RESTART };
		sigaction(SIGUSR1, &a, 0); sigaction(SIGRTMIN, &a, 0);
		say(0);
		while (asked()) say(caught);
		return 0;
	}`

// Queued signals are counted one by one while the thread is stopped again and again.
func TestSignalsArriveOnce(t *testing.T) {
	p := run(t, counting)
	pid := p.Process.Pid
	const signals = 2000
	done := make(chan error, 1)
	go func() {
		for range signals {
			if err := unix.Kill(pid, 34); err != nil { // SIGRTMIN of glibc
				done <- err
				return
			}
		}
		done <- nil
	}()
	for sent := false; !sent; {
		select {
		case err := <-done:
			require.NoError(t, err)
			sent = true
		default:
			_, err := Stop(pid, pid, func(Stopped) {})
			require.NoError(t, err)
		}
	}
	require.Eventually(t, func() bool { return p.ask() == signals }, time.Minute, 10*time.Millisecond)
	time.Sleep(20 * time.Millisecond)
	require.Equal(t, signals, p.ask())
}

// A thread that stops because a signal comes takes it when it goes on.
func TestSignalComesFirst(t *testing.T) {
	p := run(t, counting)
	pid := p.Process.Pid
	done := make(chan error, 1)
	trace(func() bool {
		err := func() error {
			if err := unix.PtraceSeize(pid); err != nil {
				return err
			}
			if err := unix.Kill(pid, unix.SIGUSR1); err != nil {
				return err
			}
			pending, _, err := awaitStop(pid)
			if err != nil || pending != int(unix.SIGUSR1) {
				return fmt.Errorf("pending %d: %w", pending, err)
			}
			return detach(pid, pending)
		}()
		done <- err
		return err != nil
	})
	require.NoError(t, <-done)
	requireFree(t, pid)
	require.Eventually(t, func() bool { return p.ask() == 1 }, time.Minute, time.Millisecond)
}

func TestStopRefusesTraced(t *testing.T) {
	p := run(t, `int main(void) { say(0); while (asked()) say(1); return 0; }`)
	pid := p.Process.Pid
	seized, end, ended := make(chan error), make(chan struct{}), make(chan struct{})
	trace(func() bool {
		defer close(ended)
		seized <- unix.PtraceSeize(pid)
		<-end
		return true
	})
	require.NoError(t, <-seized)
	_, err := Stop(pid, pid, func(Stopped) { t.Error("visited") })
	require.ErrorIs(t, err, ErrTraced)
	require.ErrorContains(t, err, "tracer: ")
	close(end)
	<-ended
	requireFree(t, pid)
	_, err = Stop(pid, pid, func(Stopped) {})
	require.NoError(t, err)
}

func TestStopOfTheDead(t *testing.T) {
	p := run(t, `
		static void *end(void *x) { return x; }
		int main(void) {
			say(0);
			for (;;) { pthread_t t; pthread_create(&t, 0, end, 0); pthread_join(t, 0); }
		}`)
	pid := p.Process.Pid
	ends := 0
	for began := time.Now(); ends < 20 && time.Since(began) < time.Minute; {
		tids, _, err := procfs.FS{}.Threads(pid, 10)
		require.NoError(t, err)
		for _, tid := range tids {
			if _, err := Stop(pid, tid, func(Stopped) {}); err != nil {
				require.ErrorIs(t, err, ErrExited)
				ends++
			}
		}
	}
	require.NotZero(t, ends, "threads that end meanwhile")
	_, err := Stop(os.Getpid(), pid, func(Stopped) { t.Error("visited") })
	require.ErrorIs(t, err, ErrExited, "a thread of another process by now")

	// Killed during the visit; its parent learns how it ended.
	_, err = Stop(pid, pid, func(Stopped) {
		require.NoError(t, unix.Kill(pid, unix.SIGKILL))
		require.Eventually(t, func() bool { return state(t, pid) == 'Z' }, time.Minute, time.Millisecond)
	})
	require.ErrorIs(t, err, ErrExited)
	var exit *exec.ExitError
	_, err = Stop(pid, pid, func(Stopped) { t.Error("visited") })
	require.ErrorIs(t, err, ErrExited, "a zombie")
	require.ErrorAs(t, p.Wait(), &exit)
	require.Equal(t, unix.SIGKILL, exit.Sys().(interface{ Signal() unix.Signal }).Signal())
	_, err = Stop(pid, pid, func(Stopped) { t.Error("visited") })
	require.ErrorIs(t, err, ErrExited)
}

// A thread that waits for a vfork child cannot be stopped, and is let go.
func TestStopGivesUp(t *testing.T) {
	p := run(t, `int main(void) {
			if (vfork() == 0) { static const char ready[] = "0\n"; write(1, ready, 2); char c; read(0, &c, 1); _exit(0); }
			say(7);
			return 0;
		}`)
	pid := p.Process.Pid
	_, err := Stop(pid, pid, func(Stopped) { t.Error("visited") })
	require.ErrorIs(t, err, ErrBusy)
	require.ErrorContains(t, err, "uninterruptibly")
	requireFree(t, pid)
	require.Equal(t, 7, p.ask())
}

func TestStopOutlivesVisits(t *testing.T) {
	p := run(t, `int main(void) { say(0); while (asked()) say(1); return 0; }`)
	pid := p.Process.Pid
	end := make(chan struct{})
	_, err := Stop(pid, pid, func(Stopped) { <-end })
	require.ErrorIs(t, err, ErrHangs)
	close(end)
	requireFree(t, pid)
	require.Equal(t, 1, p.ask())
}

// What the kernel restarts goes on as if nothing had been; epoll_wait and epoll_pwait do not,
// which doc.go says.
func TestSystemCallsGoOn(t *testing.T) {
	p := run(t, `
		int main(void) {
			struct timespec nap = { 2, 0 };
			say(0);
			say(nanosleep(&nap, 0) ? errno : 1);
			struct epoll_event e;
			int n = epoll_pwait(epoll_create1(0), &e, 1, 60000, 0);
			say(n < 0 && errno == EINTR ? 2 : n);
			while (asked()) say(3);
			return 0;
		}`)
	pid := p.Process.Pid
	for range 20 {
		_, err := Stop(pid, pid, func(Stopped) {})
		require.NoError(t, err)
	}
	require.Equal(t, 1, p.line(), "nanosleep sleeps on")
	require.Eventually(t, func() bool {
		call, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid))
		return err == nil && strings.HasPrefix(string(call), fmt.Sprint(unix.SYS_EPOLL_PWAIT, " "))
	}, time.Minute, time.Millisecond)
	_, err := Stop(pid, pid, func(Stopped) {})
	require.NoError(t, err)
	require.Equal(t, 2, p.line(), "epoll_pwait is interrupted")
	require.Equal(t, 3, p.ask())
}

// The OS thread that has stopped another goes back to where it was.
func TestHurry(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
	require.NoError(t, err)
	hurry()()
	after, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestVanished(t *testing.T) {
	require.ErrorIs(t, vanished(unix.ESRCH), ErrExited)
	require.ErrorIs(t, vanished(unix.ECHILD), ErrExited)
	other := errors.New("other")
	require.Equal(t, other, vanished(other))
}
