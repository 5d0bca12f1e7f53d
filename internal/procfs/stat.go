package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// firstRead is enough for most files of a process.
const firstRead = 4 << 10

const (
	maxStatBytes   = 4 << 10
	maxStatusBytes = 64 << 10
	// maxTasks bounds the search for a living thread behind a dead leader.
	maxTasks = 1024
	// startTimeField is the position of starttime behind the command in
	// /proc/PID/stat, where the manual counts it as field 22.
	startTimeField = 22 - 3
	flagsField     = 9 - 3
	memoryField    = 23 - 3 // vsize
	stackField     = 28 - 3 // startstack
	// flagExiting is PF_EXITING of include/linux/sched.h, flagKernelThread PF_KTHREAD.
	flagExiting      = 0x00000004
	flagKernelThread = 0x00200000
	// flagsKernelMade are PF_IO_WORKER and PF_USER_WORKER; the latter was not used before 6.4.
	flagsKernelMade = 0x00000010 | 0x00004000
)

// TicksPerSecond is the unit of Stat.StartTicks. The kernel's USER_HZ is 100 on
// every architecture that we support.
const TicksPerSecond = 100

// Stat is what /proc/PID/stat says.
type Stat struct {
	Comm       string // raw bytes, at most 15 (64 for kernel threads)
	State      byte   // 'R', 'S', 'Z' and so on
	StartTicks uint64 // since boot, in 1/TicksPerSecond s, in the reader's time namespace
	// StartStack is where the stack of its memory began when that was made, which most often tells a program
	// from the next one; 0 if there is none, or without permission (PTRACE_MODE_READ).
	StartStack uint64
	// KernelThread has neither an executable nor memory of its own.
	KernelThread bool
	// KernelMade threads were made by the kernel for a process, with its memory
	// and a copy of their maker's registers. They run no code of the program.
	KernelMade bool
	// Exiting tasks run no code of the program any more: those that are dead or ending, and some that soon will be.
	Exiting bool
	// Ending tasks are exiting and have given up their memory: maps are empty or end early.
	Ending bool
}

// Dead reports whether the task has exited. A process whose leader is dead may
// live on in other threads: see FS.LiveThread.
func (s Stat) Dead() bool { return s.State == 'Z' || s.State == 'X' }

// Stat reads /proc/PID/stat.
func (f FS) Stat(pid int) (Stat, error) { return f.stat(pid, "stat") }

func (f FS) stat(pid int, name string) (Stat, error) {
	var buffer [firstRead]byte
	data, _, err := f.read(pid, name, maxStatBytes, buffer[:])
	if err != nil {
		return Stat{}, fmt.Errorf("read stat: %w", err)
	}
	return parseStat(data)
}

// parseStat parses "pid (comm) state ppid ...". The command may hold any byte,
// parentheses and newlines included, so it ends at the last parenthesis.
func parseStat(data []byte) (Stat, error) {
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open {
		return Stat{}, &FormatError{Msg: "stat without a command"}
	}
	var rest [stackField + 1][]byte
	for i, left := 0, data[end+1:]; i < len(rest); i++ {
		rest[i], left = cutWord(left)
	}
	if len(rest[stackField]) == 0 || len(rest[0]) != 1 {
		return Stat{}, &FormatError{Off: uint64(end), Msg: "stat with too few fields"}
	}
	ticks, err := strconv.ParseUint(string(rest[startTimeField]), 10, 64)
	if err != nil {
		return Stat{}, &FormatError{Off: uint64(end), Msg: "bad start time", Val: string(rest[startTimeField])}
	}
	flags, err := strconv.ParseUint(string(rest[flagsField]), 10, 64)
	if err != nil {
		return Stat{}, &FormatError{Off: uint64(end), Msg: "bad flags", Val: string(rest[flagsField])}
	}
	stack, err := strconv.ParseUint(string(rest[stackField]), 10, 64)
	if err != nil {
		return Stat{}, &FormatError{Off: uint64(end), Msg: "bad start of the stack", Val: string(rest[stackField])}
	}
	s := Stat{
		Comm: string(data[open+1 : end]), State: rest[0][0],
		StartTicks: ticks, StartStack: stack, KernelThread: flags&flagKernelThread != 0, KernelMade: flags&flagsKernelMade != 0,
		Exiting: flags&flagExiting != 0,
	}
	s.Ending = !s.KernelThread && string(rest[memoryField]) == "0"
	return s, nil
}

// Status is what /proc/PID/status says.
type Status struct {
	UID   uint32 // real user id, in the reader's user namespace
	NSPID int    // PID in the innermost PID namespace of the process
	TGID  int    // of the process, if this is a thread; 0: not told
	// TracerPID is the thread that traces it; 0: none, or one that is not visible here.
	TracerPID int
	GIDs      []uint32 // real group id, supplementary groups; in the reader's user namespace
}

// Credentials are as whom a process has files opened on its behalf: its real user and
// groups, as our user namespace sees them. What has an access control list is only for its owner and root, whatever the
// list allows.
type Credentials struct {
	UID  uint32
	GIDs []uint32
}

// Credentials returns as whom files are opened on the process's behalf.
func (s *Status) Credentials() Credentials { return Credentials{s.UID, s.GIDs} }

// Status reads /proc/PID/status.
func (f FS) Status(pid int) (Status, error) {
	var buffer [firstRead]byte
	data, _, err := f.read(pid, "status", maxStatusBytes, buffer[:])
	if err != nil {
		return Status{}, fmt.Errorf("read status: %w", err)
	}
	return parseStatus(data)
}

func parseStatus(data []byte) (Status, error) {
	data = data[:bytes.LastIndexAny(data, " \t\n")+1] // a number that was cut off is another one
	var s Status
	var err error
	found := false
	for len(data) > 0 {
		var line []byte
		line, data, _ = bytes.Cut(data, []byte{'\n'})
		key, values, _ := bytes.Cut(line, []byte{':'})
		word, values := cutWord(values)
		if len(word) == 0 {
			continue
		}
		switch string(key) {
		case "Uid":
			s.UID, err = parseUserID("uid", word)
			found = true
		case "Gid":
			err = s.addGID(word)
		case "Groups":
			for ; err == nil && len(word) > 0; word, values = cutWord(values) {
				err = s.addGID(word)
			}
		case "NSpid":
			for next := word; len(next) > 0; next, values = cutWord(values) {
				word = next
			}
			s.NSPID, err = parsePID("NSpid", word)
		case "Tgid":
			s.TGID, err = parsePID("Tgid", word)
		case "TracerPid":
			s.TracerPID, err = parsePID("TracerPid", word)
		}
		if err != nil {
			return Status{}, err
		}
	}
	if !found {
		return Status{}, &FormatError{Msg: "status without a uid"}
	}
	return s, nil
}

func (s *Status) addGID(word []byte) error {
	gid, err := parseUserID("gid", word)
	s.GIDs = append(s.GIDs, gid)
	return err
}

func parseUserID(what string, word []byte) (uint32, error) {
	id, err := strconv.ParseUint(string(word), 10, 32)
	if err != nil {
		return 0, &FormatError{Msg: "bad " + what, Val: string(word)}
	}
	return uint32(id), nil
}

func parsePID(key string, word []byte) (int, error) {
	pid, err := strconv.ParseUint(string(word), 10, 31)
	if err != nil {
		return 0, &FormatError{Msg: "bad " + key, Val: string(word)}
	}
	return int(pid), nil
}

// LiveThread returns the id of a thread of the process that is not exiting. A leader that
// called pthread_exit has no memory of its own any more: its maps are empty and its exe is
// gone, but /proc/TID of another thread has both.
func (f FS) LiveThread(pid int) (int, error) {
	dir, err := os.Open(f.path(pid, "task"))
	if err != nil {
		return 0, gone(err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxTasks)
	if err != nil && len(names) == 0 {
		return 0, gone(err)
	}
	for _, name := range names {
		tid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		// What /proc/TID/stat says is summed up over all threads, this is not.
		if st, err := f.stat(pid, "task/"+name+"/stat"); err == nil && !st.Exiting {
			return tid, nil
		}
	}
	return 0, ErrNoProcess
}

// BootTimeOffset returns what the kernel adds to start times before it shows
// them to this process, in ns: the boot time offset of its time namespace.
func (f FS) BootTimeOffset() (int64, error) { return f.timeOffset("self", "boottime") }

// BootTimeOffsetOf returns by how much CLOCK_BOOTTIME of a process is ahead of the kernel's own, in ns. After
// unshare(2) that holds from its next exec.
func (f FS) BootTimeOffsetOf(pid int) (int64, error) {
	return f.timeOffset(strconv.Itoa(pid), "boottime")
}

// MonotonicOffset returns by how much CLOCK_MONOTONIC of this process is ahead of the kernel's own, in
// ns: the offset of its time namespace.
func (f FS) MonotonicOffset() (int64, error) { return f.timeOffset("self", "monotonic") }

func (f FS) timeOffset(process, clock string) (int64, error) {
	data, err := os.ReadFile(f.root() + "/" + process + "/timens_offsets")
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil // a kernel without time namespaces
	}
	if err != nil {
		return 0, fmt.Errorf("read timens_offsets: %w", err)
	}
	for line := range bytes.Lines(data) {
		words := bytes.Fields(line)
		if len(words) != 3 || string(words[0]) != clock {
			continue
		}
		sec, err1 := strconv.ParseInt(string(words[1]), 10, 33)
		nsec, err2 := strconv.ParseInt(string(words[2]), 10, 33)
		if err := errors.Join(err1, err2); err != nil {
			return 0, fmt.Errorf("parse timens_offsets: %w", err)
		}
		return sec*1e9 + nsec, nil
	}
	return 0, nil
}
