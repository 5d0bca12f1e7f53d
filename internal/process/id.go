//go:build linux

package process

// ID identifies a process image: a reused PID has another start time, an exec
// another exec generation.
type ID struct {
	TGID    uint32 // in the init PID namespace
	StartNs uint64 // CLOCK_BOOTTIME, of the thread group leader
	ExecID  uint64 // the kernel's self_exec_id; a fork copies it
}

// after reports whether id came after other; both have the same TGID.
func (id ID) after(other ID) bool {
	return id.StartNs > other.StartNs || id.StartNs == other.StartNs && id.ExecID > other.ExecID
}

// EventKind is what happened to a process.
type EventKind uint8

// The kinds of events.
const (
	Exists       EventKind = iota // it was found running
	Exec                          // it runs another executable, ID is new
	Fork                          // it is a copy of Parent
	Exit                          // its last thread has gone
	Mapping                       // it mapped something executable; only PID is set
	MappingsLost                  // any process may have; nothing is set
	EventsLost                    // any process may have ended; those that run have been told of (Exists); nothing is set
	ContextNamed                  // it publishes a process context, or has just done so; only ID is needed
)

// Event tells of the life of a process.
type Event struct {
	Kind         EventKind
	ID           ID
	Parent       ID      // Fork
	PID          int     // in the PID namespace of the collector; 0: not visible there
	TimeNs       uint64  // CLOCK_MONOTONIC
	Program      Program // Exec: what it runs; zero if not known
	Path         string  // Exec: as given to execve, maybe cut; "" if not known
	KernelThread bool
}
