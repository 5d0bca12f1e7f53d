package procfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// ErrNoProcess says that the process does not exist (any more), or that its
// memory is already gone.
var ErrNoProcess = errors.New("no such process")

// FormatError describes bytes that do not have the expected form.
type FormatError struct {
	Off uint64 // byte offset in the line or file
	Msg string
	Val any // the offending value, nil if there is none to show
}

func (e *FormatError) Error() string {
	if e.Val == nil {
		return fmt.Sprintf("%s at offset %d", e.Msg, e.Off)
	}
	return fmt.Sprintf("%s %q at offset %d", e.Msg, fmt.Sprint(e.Val), e.Off)
}

// FS is a mounted procfs. The zero value is /proc.
type FS struct {
	Root string // mount point, "" for /proc
}

func (f FS) root() string {
	if f.Root == "" {
		return "/proc"
	}
	return f.Root
}

func (f FS) path(pid int, name string) string {
	return f.root() + "/" + strconv.Itoa(pid) + "/" + name
}

// Exists reports whether there is a process with a PID.
func (f FS) Exists(pid int) bool {
	_, err := os.Lstat(f.path(pid, ""))
	return err == nil
}

// gone turns the two errors by which procfs says that a task has left, ENOENT
// when its directory is opened and ESRCH when an open file is read, into one.
func gone(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("%w: %w", ErrNoProcess, err)
	}
	return err
}

// KernelSymbols opens the table of kernel symbols; the caller closes it.
func (f FS) KernelSymbols() (io.ReadCloser, error) {
	file, err := os.Open(f.root() + "/kallsyms")
	if err != nil {
		return nil, err
	}
	return file, nil
}
