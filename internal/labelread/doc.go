// Package labelread reads the labels of one thread of another process from
// user space: a reader beside that of the BPF programs, written apart from it,
// for looking into a process by hand and for checking one reader by the other.
//
// [Stop] stops a thread for the time of a visit, [Read] evaluates a TLS
// location for it, or follows a register, and copies what the label source holds into a label block of
// internal/bpf/src/record.h, which labels.Decode decodes. Both readers have the
// same bounds and give the same outcomes and the same bytes.
//
// Two differences follow from where the readers run. This one brings in pages
// that are not in memory, where BPF reports a fault; and it can be kept waiting
// by the process, whose page faults may be served by the process itself.
//
// What a stop does to the thread: it stands still for some tens to hundreds of
// microseconds. With CAP_SYS_NICE this holds on a busy machine, too: the thread
// that reads then goes first. A system call that it waits in is restarted by the kernel; the
// few that the kernel does not restart, epoll_wait among them, return EINTR, as
// they do when a debugger attaches. Signals arrive once, a thread that was
// stopped stays stopped, and however the visit ends, the thread is let go.
package labelread
