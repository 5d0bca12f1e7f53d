package procfs

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const rootUser = 0

// Errors of StatMapped and OpenMapped.
var (
	// ErrNotRegular says that a path leads to something else than a regular file.
	ErrNotRegular = errors.New("not a regular file")
	// ErrReplaced says that a path leads to another file than the one that is mapped.
	ErrReplaced = errors.New("file was replaced")
	// ErrNoFile says that a mapping has no file behind it.
	ErrNoFile = errors.New("mapping has no file")
)

// StatMapped identifies the file behind a mapping without opening it where the
// kernel allows that (see OpenMapped).
func (f FS) StatMapped(pid int, m Mapping) (FileID, error) {
	if m.Inode == 0 {
		return FileID{}, ErrNoFile
	}
	if st, err := statCached(f.mapFile(pid, m)); err == nil {
		return regular(&st)
	}
	fd, id, err := f.locateByPath(pid, m, anybody)
	if err != nil {
		return FileID{}, err
	}
	unix.Close(fd)
	return id, nil
}

// StatExecutable identifies the executable of a process.
func (f FS) StatExecutable(pid int) (FileID, error) {
	st, err := statCached(f.path(pid, "exe"))
	if err != nil {
		return FileID{}, fmt.Errorf("stat exe: %w", gone(err))
	}
	return regular(&st)
}

// statCached is stat(2) with what the kernel knows of a file: it asks no file server, which may not
// answer.
func statCached(path string) (unix.Stat_t, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, unix.STATX_BASIC_STATS, &st)
	return unix.Stat_t{
		Mode: uint32(st.Mode), Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Ino: st.Ino, Size: int64(st.Size),
		Ctim: unix.Timespec{Sec: st.Ctime.Sec, Nsec: int64(st.Ctime.Nsec)},
	}, err
}

// OpenMapped opens the file behind a mapping for reading. The file is taken
// from /proc/PID/map_files, which is exact, also for deleted files, but needs
// CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE; else by its path below the root of
// the process, when the inode there is the mapped one. When the process has gone, it is
// looked for below our root, whoever may read it.
//
// want is what StatMapped has said of the file. Another one is not opened: ErrReplaced.
func (f FS) OpenMapped(pid int, m Mapping, want FileID) (*os.File, error) {
	if m.Inode == 0 {
		return nil, ErrNoFile
	}
	fd, err := unix.Open(f.mapFile(pid, m), unix.O_PATH|unix.O_CLOEXEC, 0)
	var id FileID
	if err == nil {
		id, err = fstatRegular(fd)
		if err != nil {
			unix.Close(fd)
			return nil, err
		}
	} else if fd, id, err = f.locateByPath(pid, m, rootUser); err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if id != want {
		return nil, ErrReplaced
	}
	return reopen(fd, m.Path)
}

func (f FS) mapFile(pid int, m Mapping) string {
	return f.path(pid, "map_files/") + strconv.FormatUint(m.Start, 16) + "-" + strconv.FormatUint(m.Limit, 16)
}

// locateByPath returns an O_PATH descriptor of the mapped file. The kernel shows
// the path as seen from our root if it can be reached from there (a chroot), and
// else as seen from the root of the process's mount namespace (a container).
// late is the user if the process has gone.
func (f FS) locateByPath(pid int, m Mapping, late uint32) (int, FileID, error) {
	var err error
	for _, root := range []Root{ProcessRoot, OurRoot} {
		var fd int
		var id FileID
		if fd, id, err = f.locateBelow(pid, root, m, late); err == nil {
			return fd, id, nil
		}
	}
	return -1, FileID{}, err
}

// locateBelow looks below one root. Whose process has mapped the file may read or run it.
func (f FS) locateBelow(pid int, root Root, m Mapping, late uint32) (int, FileID, error) {
	fd, st, _, err := f.locate(pid, root, m.Path, walk{late: late}, mayRead|mayExecute)
	if err != nil {
		return -1, FileID{}, err
	}
	id, err := regular(&st)
	// Only the inode is compared: on btrfs and overlayfs the device numbers of
	// maps and of stat differ.
	if err == nil && id.Inode != m.Inode {
		err = ErrReplaced
	}
	if err != nil {
		unix.Close(fd)
		return -1, FileID{}, fmt.Errorf("locate %q: %w", m.Path, err)
	}
	return fd, id, nil
}

// reopen turns an O_PATH descriptor of a regular file into one for reading.
// O_NONBLOCK refuses to wait for the holder of a lease. It does not stay: Go would have its poller take the file, for
// which the kernel asks a FUSE file system (FUSE_POLL), and waits for the answer, with a lock that all of Go's
// descriptors need.
func reopen(fd int, name string) (*os.File, error) {
	real, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd),
		unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	if err := unix.SetNonblock(real, false); err != nil {
		return nil, errors.Join(&os.PathError{Op: "fcntl", Path: name, Err: err}, unix.Close(real))
	}
	return os.NewFile(uintptr(real), name), nil
}

// Identify returns what an open file is now.
func Identify(file *os.File) (FileID, error) { return fstatRegular(int(file.Fd())) }

func fstatRegular(fd int) (FileID, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return FileID{}, fmt.Errorf("stat mapped file: %w", err)
	}
	return regular(&st)
}

func regular(st *unix.Stat_t) (FileID, error) {
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return FileID{}, ErrNotRegular
	}
	return FileID{Dev: st.Dev, Inode: st.Ino, CtimeNs: st.Ctim.Nano(), Size: st.Size}, nil
}
