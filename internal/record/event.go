package record

// EventKind is what happened to a process: enum event_kind, and what is told of processes
// otherwise.
type EventKind uint8

// The kinds of events.
const (
	EventExists       EventKind = iota // it was found running
	EventExec                          // it runs another executable, Process is new
	EventFork                          // it is a copy of Parent
	EventExit                          // its last thread has gone
	EventContextNamed                  // it publishes a process context (OTEP 4719), or has just done so; only Process is needed
	EventSampled                       // it is sampled, and was not looked at yet; only Process is needed

	// Those that follow come from no process event of the BPF programs.

	EventMapping      // it mapped something executable; only PID, FileNs and TimeNs are set, the latter to when that was done last or 0
	EventMappingsLost // any process may have; nothing is set
	EventLost         // any process may have ended; those that run have been told of (EventExists); nothing is set
)

// Event tells of the life of a process.
type Event struct {
	Kind         EventKind
	Process      ProcessID
	Parent       ProcessID // EventFork: whose memory was copied
	PID          int       // in the PID namespace of the collector; 0: not visible there
	TimeNs       uint64    // CLOCK_MONOTONIC
	FileNs       uint64    // EventMapping: when the first of them that shows a file was mapped; 0: none does
	Program      FileKey   // EventExec: what it runs; zero if not known
	StartStack   uint64    // EventExec: of its memory, as in /proc/PID/stat; 0 if not known
	Path         string    // EventExec: as given to execve, of a script that of its interpreter; maybe relative, maybe cut; "" if not known
	KernelThread bool
}

// ProcessEvent is an Event in the ring buffer: struct process_event. ExecPathBytes of a path
// follow that of an exec.
type ProcessEvent struct {
	TimeNs       uint64
	Process      ProcessID
	Parent       ProcessID
	StartStack   uint64
	PID          uint32
	Kind         EventKind
	KernelThread uint8
	PathBytes    uint16 // of the path, without NUL; 0: not read
	Program      FileKey
}
