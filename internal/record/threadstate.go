package record

// ThreadState is what a thread does, or why it is off the CPU: enum thread_state.
type ThreadState uint8

// The states of threads. ThreadRunning has no name in the output.
const (
	ThreadRunning         ThreadState = iota
	ThreadRunnable                    // preempted, or gave way
	ThreadSleeping                    // waits, and a signal can interrupt it
	ThreadUninterruptible             // waits, mostly for storage
	ThreadStopped                     // by a signal or a debugger
	ThreadOther
	NumThreadStates
)

// String returns the name used in the output.
func (s ThreadState) String() string {
	if s >= NumThreadStates {
		s = ThreadOther
	}
	return [NumThreadStates]string{"running", "runnable", "sleeping", "uninterruptible", "stopped", "other"}[s]
}
