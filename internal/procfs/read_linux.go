package procfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// open opens a file of a process for reading, without asking Go's poller to take it, which
// it does not.
func (f FS) open(pid int, name string) (*os.File, error) {
	fd, err := openFile(f.path(pid, name))
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func openFile(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			return fd, nil
		}
		if !errors.Is(err, unix.EINTR) {
			return -1, gone(&os.PathError{Op: "open", Path: path, Err: err})
		}
	}
}

// read returns at most limit bytes of a file of a process and whether there are more. It takes
// as few system calls as can be: it is done several times for each process that begins. What fits
// is in the buffer, which may be on the stack.
func (f FS) read(pid int, name string, limit int, buffer []byte) (data []byte, more bool, err error) {
	path := f.path(pid, name)
	fd, err := openFile(path)
	if err != nil {
		return nil, false, err
	}
	defer unix.Close(fd)
	data = buffer[:0:min(limit+1, len(buffer))]
	for {
		n, err := unix.Read(fd, data[len(data):cap(data)])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, false, gone(&os.PathError{Op: "read", Path: path, Err: err})
		}
		data = data[:len(data)+n]
		switch {
		case len(data) > limit:
			return data[:limit], true, nil
		case n == 0, wholeAtOnce(name) && len(data) < cap(data):
			return data, false, nil
		case len(data) == cap(data):
			data = append(make([]byte, 0, min(limit+1, 4*cap(data))), data...)
		}
	}
}

// wholeAtOnce tells the files that the kernel makes in one go (single_open): a read that does
// not fill its buffer was the last.
func wholeAtOnce(name string) bool { return name == "stat" || name == "status" || name == "cgroup" }
