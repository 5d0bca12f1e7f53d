package record

// ProcessID identifies a process image: a reused PID has another start time, an exec
// another exec generation. struct process_id.
type ProcessID struct {
	TGID    uint32 // in the init PID namespace
	Pad     uint32 // 0
	StartNs uint64 // CLOCK_BOOTTIME, of the thread group leader
	ExecID  uint64 // the kernel's self_exec_id; a fork copies it
}

// After reports whether id came after other; both have the same TGID.
func (id ProcessID) After(other ProcessID) bool {
	return id.StartNs > other.StartNs || id.StartNs == other.StartNs && id.ExecID > other.ExecID
}

// FileKey stands for the contents of a file, as the kernel tells files apart that processes
// map. What containers show of a file of their image is one file to it, where stat(2) has
// many. It is only compared and given back; zero is none. struct file_key.
type FileKey struct {
	Inode, Size      uint64
	ChangedSec       int64 // ctime
	ChangedNsec, Dev uint32
}

// FileText says which pages of a file are mapped as one, executable. struct file_text.
type FileText struct {
	FirstPage, LimitPage uint32
	// Text is the address of the first block of the rows less the one of the file's first
	// byte, which need not be mapped.
	Text int64
}

// NamedFile asks which file the caller maps at an address, or whose file system it has open: struct named_file.
type NamedFile struct {
	Addr uint64 // 0: it asks for the descriptor
	FD   uint32
	Pad  uint32
	Key  FileKey
}
