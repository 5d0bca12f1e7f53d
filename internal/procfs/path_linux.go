package procfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// PathInfo is what is known of a file that was opened by its path.
type PathInfo struct {
	FileID
	UID  uint32 // of the owner, in our user namespace
	Mode uint32 // of it, the permissions
}

// ReadableBy reports whether a user may read the file as its owner or as anybody may. What
// groups and access control lists allow beyond that does not count.
func (i PathInfo) ReadableBy(uid uint32) bool {
	return uid == 0 || uid == i.UID || i.Mode&unix.S_IROTH != 0
}

// OpenPath opens a regular file for reading by an absolute path, as a process sees
// it: in its mount namespace, below its root. With PID 0 it is as we see it. Links
// are followed, but not out of the root, nor to open files of ours through /proc; with
// O_NOFOLLOW in flags, the path must not end in one. It is opened with our rights: see
// ReadableBy.
func (f FS) OpenPath(pid int, path string, flags int) (*os.File, PathInfo, error) {
	root := "/"
	if pid != 0 {
		root = f.path(pid, "root")
	}
	fd, err := openBelow(root, path, flags)
	if err != nil {
		return nil, PathInfo{}, err
	}
	defer unix.Close(fd)
	// What the path leads to is looked at before it is opened for reading: that of a
	// FIFO would wait, and that of a device do anything.
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, PathInfo{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	id, err := regular(&st)
	if err != nil {
		return nil, PathInfo{}, &os.PathError{Op: "open", Path: path, Err: err}
	}
	file, err := reopen(fd, path)
	return file, PathInfo{id, st.Uid, st.Mode & 0o777}, err
}

// openBelow returns an O_PATH descriptor of what a path leads to below a root.
func openBelow(root, path string, flags int) (int, error) {
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, gone(&os.PathError{Op: "open", Path: root, Err: err})
	}
	defer unix.Close(dir)
	fd, err := unix.Openat2(dir, path, &unix.OpenHow{
		Flags:   uint64(unix.O_PATH | unix.O_CLOEXEC | flags),
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return -1, &os.PathError{Op: "openat2", Path: path, Err: err}
	}
	return fd, nil
}
