//go:build linux && (amd64 || arm64)

package labelread

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// Errors of Stop.
var (
	// ErrExited says that the thread has ended, or ends now.
	ErrExited = errors.New("the thread has exited")

	// ErrTraced says that the thread has a tracer, of which there can be one.
	ErrTraced = errors.New("the thread is being traced, by a debugger for instance")

	// ErrPermission says that the thread may not be stopped.
	ErrPermission = errors.New("no permission to stop the thread: that takes CAP_SYS_PTRACE")

	// ErrBusy says that the thread could not be stopped in time, and why.
	ErrBusy = errors.New("the thread does not stop")

	// ErrHangs says that the visit takes too long. The thread is let go when the
	// visit ends, or this process.
	ErrHangs = errors.New("reading the process hangs")
)

const (
	// maxStopDelay bounds the wait for a thread that was told to stop. It has to
	// get CPU time for that, which takes a while among many that want some.
	maxStopDelay = 3 * time.Second
	// maxWaitDelay bounds it for a thread that waits uninterruptibly.
	maxWaitDelay = 300 * time.Millisecond
	// maxVisitDuration bounds a visit, which has what is left of maxStopDelay as well.
	maxVisitDuration = time.Second
	// spinDuration is the part of the wait in which we don't sleep: a thread
	// that can stop does so within it, and stands still for as long as we sleep.
	spinDuration = 50 * time.Microsecond
	minNap       = 20 * time.Microsecond
	maxNap       = 200 * time.Microsecond
)

// Stop stops a thread of a process, calls visit and lets the thread go on. It
// returns for how long the thread has stood still, at most. Threads of the own
// process cannot be stopped.
//
// visit runs on another goroutine. When Stop returns, it is over and the thread
// is let go, unless the error is ErrHangs.
func Stop(pid, tid int, visit func(Stopped)) (time.Duration, error) {
	type result struct {
		stood  time.Duration
		tracer int // OS thread that holds on to the thread, 0: none does
		err    error
	}
	done := make(chan result, 1)
	trace(func() (held bool) {
		stood, held, err := stop(pid, tid, visit)
		r := result{stood: stood, err: err}
		if held {
			r.tracer = unix.Gettid()
		}
		done <- r
		return held
	})
	timer := time.NewTimer(maxStopDelay + maxVisitDuration)
	defer timer.Stop()
	r := result{err: ErrHangs}
	select {
	case r = <-done:
	case <-timer.C:
	}
	if r.tracer != 0 {
		awaitEnd(r.tracer)
	}
	if r.err != nil {
		return 0, fmt.Errorf("stop thread %d: %w", tid, r.err)
	}
	return r.stood, nil
}

// awaitEnd waits until an OS thread of ours has ended, as it is about to.
func awaitEnd(tid int) {
	for began := time.Now(); time.Since(began) < maxStopDelay; time.Sleep(minNap) {
		if unix.Tgkill(unix.Getpid(), tid, 0) != nil {
			return
		}
	}
}

// trace runs f, which may become a tracer, on one OS thread. A tracer is a
// thread: when f still holds on to what it has traced, its OS thread ends, and
// the kernel lets go of it, whether that has stopped or not, or died. Children
// that were started from that OS thread, and made to die with their parent
// (PR_SET_PDEATHSIG), die then.
func trace(f func() (held bool)) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			unlockUnless(f())
			return
		}
		// The main thread never ends; while we hold it, we get another one.
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread()
			unlockUnless(f())
		}()
		<-done
		runtime.UnlockOSThread()
	}()
}

// unlockUnless lets a goroutine's OS thread live on when the goroutine ends.
func unlockUnless(held bool) {
	if !held {
		runtime.UnlockOSThread()
	}
}

// stop is Stop on the thread of the tracer. held tells that the thread was not
// let go.
func stop(pid, tid int, visit func(Stopped)) (stood time.Duration, held bool, err error) {
	if err := unix.PtraceSeize(tid); err != nil {
		return 0, false, refusal(tid, err)
	}
	// From now on the thread id belongs to this thread, if it did before.
	status, err := procfs.FS{}.Status(tid)
	if err != nil || status.TGID != pid {
		return 0, true, ErrExited
	}
	defer hurry()()
	if err := unix.PtraceInterrupt(tid); err != nil {
		return 0, true, fmt.Errorf("interrupt: %w", vanished(err))
	}
	pending, since, err := awaitStop(tid)
	if err != nil {
		return 0, true, err
	}
	s, err := registers(tid)
	if err == nil {
		s.TID = status.NSPID
		visit(s)
	}
	if err := detach(tid, pending); err != nil {
		return 0, true, err
	}
	return time.Since(since), false, err
}

// hurry gives this OS thread precedence, if that is allowed, until the returned
// function is called: on a busy machine, the stopped thread waits for us while
// we wait for a CPU.
func hurry() (done func()) {
	const first, offset = -20, 20 // getpriority(2): the system call returns 20 - nice
	tid := unix.Gettid()
	before, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
	if err != nil || unix.Setpriority(unix.PRIO_PROCESS, tid, first) != nil {
		return func() {} // no CAP_SYS_NICE
	}
	return func() { _ = unix.Setpriority(unix.PRIO_PROCESS, tid, offset-before) }
}

// awaitStop waits until a thread has stopped. It returns the signal that the
// thread was about to take when it did, or 0, and when it still ran, or might have.
func awaitStop(tid int) (pending int, since time.Time, err error) {
	began, nap := time.Now(), minNap
	since = began
	for {
		polled := time.Now()
		// Nothing is taken away (WNOWAIT): when the thread has died, its parent,
		// which may be this process, is yet to learn how.
		const options = unix.WSTOPPED | unix.WEXITED | unix.WNOWAIT | unix.WNOHANG | unix.WALL
		var info childInfo
		switch err := waitid(tid, &info, options); {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, since, fmt.Errorf("wait: %w", vanished(err))
		case info.pid != 0 && info.code != cldTrapped:
			return 0, since, ErrExited
		case info.pid != 0 && info.status>>8 == unix.PTRACE_EVENT_STOP:
			return 0, since, nil // by us, or by a stop signal before
		case info.pid != 0:
			return int(info.status & 0x7f), since, nil
		}
		since = polled
		switch waited := since.Sub(began); {
		case waited > maxStopDelay:
			return 0, since, fmt.Errorf("%w: it gets no CPU time", ErrBusy)
		case waited > maxWaitDelay && uninterruptible(tid):
			return 0, since, fmt.Errorf("%w: it waits in the kernel uninterruptibly", ErrBusy)
		case waited > spinDuration:
			// Not by way of Go's scheduler: that would let other OS threads in between.
			ts := unix.NsecToTimespec(nap.Nanoseconds())
			_ = unix.Nanosleep(&ts, nil) // cut short, it polls earlier
			nap = min(2*nap, maxNap)
		}
	}
}

func uninterruptible(tid int) bool {
	st, err := (procfs.FS{}).Stat(tid)
	return err == nil && st.State == 'D'
}

// refusal says why a thread cannot be traced.
func refusal(tid int, err error) error {
	if !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("seize: %w", vanished(err))
	}
	if st, err := (procfs.FS{}).Stat(tid); err != nil || st.Dead() {
		return ErrExited
	}
	if status, err := (procfs.FS{}).Status(tid); err == nil && status.TracerPID != 0 {
		return fmt.Errorf("%w (tracer: %d)", ErrTraced, status.TracerPID)
	}
	return ErrPermission
}

// vanished names the error of system calls for a thread that is no more.
func vanished(err error) error {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ECHILD) {
		return ErrExited
	}
	return err
}
