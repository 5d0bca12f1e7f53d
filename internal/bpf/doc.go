// Package bpf samples the CPUs of the host with eBPF programs of its own and
// hands out what they record.
//
// A [Sampler] loads the programs, attaches one perf event to each online CPU,
// and gives two streams: samples ([Sampler.Read]) and the life of processes
// ([Sampler.ReadEvents], [Sampler.Scan], [Sampler.ReadMappingEvents]). In the
// other direction it is told where a process publishes its labels
// ([Sampler.SetLabelSources]).
//
// The package knows no ELF, no symbols and no meaning of labels: a [Record]
// carries raw bytes with explicit lengths. Layouts, limits and enums that C
// and Go share are in src/record.h and in package record, whose types go to the
// kernel's maps and come from the ring buffers as they are. The generated twins are
// private, and what a test compares package record with.
//
// Invariants:
//   - hits = submitted + filtered + dropped, exactly, once [Sampler.Stop] has
//     returned (see [Counters]).
//   - A record is self-contained and as long as it needs to be: there is no fixed array of
//     labels, nothing in it refers to another record, and nothing has to be invalidated.
//   - A process is a [record.ProcessID]: a reused PID and an exec are other processes,
//     so what is known of one is never applied to another.
//   - A process that has no label sources costs no read of its memory for labels.
//
// # Samples
//
// The programs are our own. The OTel eBPF profiler reads labels after the stack and
// aggregates without them; here labels come first and are part of the key.
//
// Labels are read before the stack is walked, so that depth or a failing walk never costs
// labels.
//
// A fault gives no labels rather than some. A set of which one string could not be read
// would be one that never existed. What is cut by a bound is emitted and marked.
//
// What is read of an element of a hash map is copied, and counts only with its seal, a hash of
// key and value: the kernel uses the memory of a removed element again at once, for another
// key and for the same one after that.
//
// A dead perf event is told by its count. The kernel removes the events of a CPU that goes
// offline and does not put them back; a CPU that was away for an instant is noticed because
// its event has stopped counting. To ask an event interrupts its CPU, so only those are asked on whose CPU the program
// has not run for a while. What was mapped there until its side band was followed again
// has no event: user space is told that mappings were lost.
//
// # Processes
//
// Lifecycle events have a ring buffer of their own, so that a flood of samples cannot hide
// an exec. They come from BTF tracepoints. New executable mappings have no tracepoint; they
// come from the side-band records of a dummy perf event on each CPU, of which only the PID
// is used: whatever happens to a process, the answer is to read its /proc again.
//
// A fork copies the label sources in BPF, before the child runs: its first sample already
// has its labels.
//
// A process begins with what its program is known for. At exec, BPF gives it the label
// sources that others of the same program had. Where the program's file alone says where
// they are, they are its own; else they are presumed, its samples say so, and wait until
// user space has found the same places in the process. When it has found others or has had
// no time, they lose their labels and are counted (unconfirmed_source). When two processes
// of a program differ, nothing is presumed of it any more.
//
// What a new process maps is read from the kernel's tree of mappings, by the sampling
// program: the file at an address, by device, inode, size and time of change, and with it
// the rows that user space made of that very file. So stacks are whole before user space
// has looked at the process. The tree is that of Linux 6.1 and newer; nothing is followed
// in it but by reads that may fail, and what is found must belong to the process and hold
// the address. BPF learns nothing by itself: a list of mappings may be behind, and what one
// process maps must not teach others. User space has the kernel name a file by mapping it
// and asking a BPF program, because stat(2) names what overlayfs and btrfs make of it, and
// asks again when the rows have been read. A table that goes takes its entries along;
// another table of the file then holds again.
//
// The announcement of a process context is heard where that is free, and contexts are
// polled everywhere. A publisher calls prctl at the end of each publication. A tracepoint
// for it would put every system call of the host on the kernel's slow path, and tracing
// data mappings would send a record for each mmap; so a BPF program is attached to
// security_task_prctl, which prctl alone calls (src/context.bpf.c). That takes fentry:
// Debian's kernels have it on x86-64 from 6.1 on and on aarch64 with 6.12, not with 6.1
// (fentry came to aarch64 with Linux 6.4); some kernels refuse it although they have it.
// prctl_set_vma itself is inlined. Without the program nothing is lost but time: the
// timestamp of a context costs one read of 8 bytes, and sampled processes are looked at. Nobody
// can flood the events, or take the place of others: one of a process in 10 ms, and in 1 ms on a CPU four of a user,
// of which the first wakes the reader, and 16 of all. What a process announces within 10 ms is seen by another look
// 17 ms later; what is beyond the other two is counted, and found when the process is looked at.
//
// A record that is being written hides all that is behind it. The program at security_task_prctl
// can be preempted, by kernels that preempt themselves: its event is written in one go, with
// preemption off where BPF can do that (Linux 6.10). So can those that follow processes, from
// Linux 7.0 on, where tracepoints leave preemption on (tracepoint_srcu in
// include/linux/tracepoint.h): they run with preemption off, so that no record stays half
// written. That does not keep them from being missed: a task that is to be preempted is so at
// the end of its program, before the kernel has taken its guard against recursion back, and until
// it runs again the kernel does not run the program for others on that CPU. It counts that
// (recursion_misses of struct bpf_prog_info), and processes are listed again. Of announcements,
// nothing is counted that way: contexts are polled for.
// The reader takes a record that is not complete for none, and waits for it as for any other.
//
// # Stacks
//
// Tables of unwind rows are maps of their own in pages of 4 KiB, as large as they need to
// be and gone when they are removed, rather than a share of one large map that would have
// to be paid for from the start.
//
// A process's mappings with rows are a sorted list in chunks, under a number that is never
// used again. A forked child copies the number; a list that has been replaced is missing,
// not wrong, and the kernel's tree is asked in its place.
//
// A frame costs no lookup in the end: a CPU keeps the rules that it has found lately, by table
// and offset, and the last mappings of the process that it sampled last, by the number of the
// list. Neither number is used again and what they name does not change, so nothing that is
// kept can be out of date, also when the table has been removed. Of the stack, 1,024 bytes at a
// time are read, up to the end of a page: what can be read of it does not depend on what lies
// behind.
//
// A list holds while its process has as many executable pages as when it was read
// (exec_vm): one comparison for each sample notices dlopen and mremap, of which the kernel
// tells late or not at all. Else the tree is asked.
//
// A stack is whole only if it is known to be: it has reached a frame without a return
// address, or a frame pointer of 0 in a process whose files have all been looked at.
// Anything else is marked in the data and counted by reason.
//
// A thread begins where the system call that made it returns. Until then its registers are
// its maker's, and so would its callers be. It is told by a result of 0 of clone or clone3,
// by the stack that was passed, and by its maker's: the child of a fork or vfork, on a copy
// of its maker's stack or on that itself, does have its callers. Where no number of the
// system call is left, the instructions before tell it.
//
// # Time off the CPU
//
// A thread that leaves the CPU is recorded as it leaves, not when it is back: only then are
// its memory and registers those of the current thread on every kernel, since a tracepoint
// in a returning thread's own context does not exist everywhere. The kernel keeps when it
// left, user space keeps the record, as bytes (package offcpu); a second small record
// joins them. So the minimum saves output and not work; the threshold saves work.
//
// Switches have an object of their own, with ring buffer, scratch memory and counters: a
// storm of switches cannot cost CPU samples, a sample that interrupts the recording of a
// switch does not find its own scratch in use, and nothing is loaded where it is not
// wanted. A quarter of that ring buffer is only for returns, as many as threads can be
// away.
//
// A return that was not seen is made up for. A host may hide switches of its own tasks from
// tracing. A thread that runs without having been switched to has been back for as long as
// the CPU time it has used since it left.
//
// # Users
//
// A user's share of a ring buffer is held in BPF, without user space. Unread bytes of a
// user are counted in two parts, before and behind a position; when the reader has passed
// it, the older part is gone (src/share.bpf.h). The bound is never below what is unread, but
// for a record or two of other CPUs at that instant, and exact for a user who is alone in
// the buffer. A sample without room ends before its labels are read and its stack is
// walked. The users are in an LRU map: one who is forgotten starts anew, which costs nobody
// else anything.
//
// # Kernels
//
// What the kernel can do is tried before anything is loaded (kernel.go): helpers, maps and
// instructions by small programs, fields by its BTF. A version says little, because
// distributions add to old ones.
//
// There are two sets of objects from one source: what Linux 5.10 can do differs in loops,
// atomic operations, the arguments of functions and the ways to a task (src/compat.bpf.h). A
// loop's body is a global function there, to which only a number is passed: the verifier goes
// through it once, where it would follow inlined bodies beyond its limit. The program of
// process contexts is made for older kernels only, as it runs seldom. Another of it turns
// preemption off: with weak symbols in one for all, cilium/ebpf would read the types of all
// modules of a kernel that lacks them.
//
// Older objects do not look at the kernel's mappings of a process, because the tree that they
// could read came with the last of what they do without. A list that does not hold any more is
// as good as none there, too: frames by frame pointers may be fewer, but not wrong.
//
// # Generated files
//
// Objects and Go twins are committed, so that users and ocb need no clang. `make
// generate-check` compares them; objects only with the compiler version in
// tools/clang-version, because another one makes other bytes.
package bpf
