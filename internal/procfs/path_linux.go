package procfs

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Permissions of a file, as in the last three bits of a mode.
const (
	mayRead    = unix.S_IROTH
	mayExecute = unix.S_IXOTH // of a directory: pass
)

// may reports whether a file's mode allows one of some permissions.
func (c *Credentials) may(st *unix.Stat_t, any uint32) bool {
	mode := st.Mode
	switch {
	case c.UID == rootUser:
		return true
	case c.UID == st.Uid:
		mode >>= 6
	case slices.Contains(c.GIDs, st.Gid):
		mode >>= 3
	}
	return mode&any != 0
}

// may reports whether the user may have one of some permissions to what was reached last. Where it has an access control
// list, which can take away what the mode allows, only its owner may, and root.
func (w *walk) may(st *unix.Stat_t, any uint32) bool {
	return w.as.may(st, any) && (w.as.UID == rootUser || w.as.UID == st.Uid || !hasACL(w.last()))
}

// hasACL reports whether a file has an access control list, or may have one.
func hasACL(fd int) bool {
	_, err := unix.Getxattr("/proc/self/fd/"+strconv.Itoa(fd), "system.posix_acl_access", nil)
	return !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.EOPNOTSUPP)
}

// PathInfo is what is known of a file that was opened by its path.
type PathInfo struct {
	FileID
	UID  uint32 // of the owner, in our user namespace
	User uint32 // of the process
	GID  uint32 // of the owner's group
	// GroupWrites says that the group may write the file.
	GroupWrites bool
	// Shared says that all may write it, or that it has other names: who may write it by another one
	// may have linked it here.
	Shared bool
}

// Root says below which root a path is meant.
type Root uint8

// The roots.
const (
	ProcessRoot Root = iota // as the process sees it: in its mount namespace, below its root
	OurRoot                 // as we see it
)

// ErrNotAllowed says that a process's user may not read a file, or not reach it.
var ErrNotAllowed = errors.New("the process's user may not read it")

// OpenPath opens a regular file for reading by an absolute path, on behalf of a process:
// only if its user may pass each directory and read the file. Nothing is opened for reading
// before that is known. Links are followed, but not out of the root; with O_NOFOLLOW in
// flags, the path must not end in one. Below our root, a process that has gone, or PID 0, may
// what all may.
func (f FS) OpenPath(pid int, root Root, path string, flags int) (*os.File, PathInfo, error) {
	fd, st, user, err := f.locate(pid, root, path, walk{flags: flags, late: anybody}, mayRead)
	if err != nil {
		return nil, PathInfo{}, err
	}
	defer unix.Close(fd)
	id, err := regular(&st)
	if err != nil {
		return nil, PathInfo{}, &os.PathError{Op: "open", Path: path, Err: err}
	}
	file, err := reopen(fd, path)
	return file, PathInfo{
		FileID: id, UID: st.Uid, User: user, GID: st.Gid,
		GroupWrites: st.Mode&unix.S_IWGRP != 0, Shared: st.Mode&unix.S_IWOTH != 0 || st.Nlink != 1,
	}, err
}

// locate returns an O_PATH descriptor of what a path leads to, if a process's user has one
// of some permissions to it.
func (f FS) locate(pid int, root Root, path string, w walk, any uint32) (fd int, st unix.Stat_t, user uint32, err error) {
	defer func() { w.back(0) }()
	if user, err = w.begin(f.root()+"/"+strconv.Itoa(pid), root); err == nil {
		err = w.to(path)
	}
	if err != nil {
		return -1, st, user, &os.PathError{Op: "find", Path: path, Err: err}
	}
	fd = w.last()
	if err = unix.Fstat(fd, &st); err != nil {
		return -1, st, user, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if !w.may(&st, any) {
		return -1, st, user, &os.PathError{Op: "find", Path: path, Err: ErrNotAllowed}
	}
	w.fds = w.fds[:len(w.fds)-1] // it is the caller's
	return fd, st, user, nil
}

const (
	// maxWalkLinks is what the kernel follows in one path (MAXSYMLINKS).
	maxWalkLinks = 40
	// maxWalkDepth bounds the directories on the way, and so the descriptors.
	maxWalkDepth = 64
)

// walk goes along a path with the permissions of a user. The kernel would go with ours; to
// take on the user's takes CAP_SETUID, which a profiler should not have.
type walk struct {
	as    Credentials
	late  uint32 // the user, below our root, if the process has gone
	flags int
	fds   []int // O_PATH, from the root on
	links int
}

// anybody has no more than what all have.
const anybody = math.MaxUint32

// begin opens the root. What it needs of the process is read below one descriptor of its
// directory, so that all of it is about one process, however fast its PID is used again.
func (w *walk) begin(dir string, root Root) (user uint32, err error) {
	proc, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) && root == OurRoot {
		return w.late, w.beginAs(Credentials{UID: w.late})
	}
	if err != nil {
		return 0, gone(err)
	}
	defer unix.Close(proc)
	fd, err := unix.Openat(proc, "status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, gone(err)
	}
	file := os.NewFile(uintptr(fd), "status")
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxStatusBytes))
	if err != nil {
		return 0, gone(err)
	}
	status, err := parseStatus(data)
	if err != nil || root == OurRoot {
		return status.UID, errors.Join(err, w.beginAs(status.Credentials()))
	}
	w.as = status.Credentials()
	return status.UID, w.enter(proc, "root")
}

// beginAs begins at our root.
func (w *walk) beginAs(as Credentials) error {
	w.as = as
	return w.enter(unix.AT_FDCWD, "/")
}

func (w *walk) enter(at int, dir string) error {
	fd, err := unix.Openat(at, dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return gone(err)
	}
	w.fds = append(w.fds, fd)
	return nil
}

func (w *walk) last() int { return w.fds[len(w.fds)-1] }

// back goes back until so many directories are left.
func (w *walk) back(n int) {
	for len(w.fds) > n {
		unix.Close(w.last())
		w.fds = w.fds[:len(w.fds)-1]
	}
}

// to goes along a path.
func (w *walk) to(path string) error {
	if !strings.HasPrefix(path, "/") {
		return unix.EINVAL
	}
	rest := strings.Split(path, "/")
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			w.back(max(len(w.fds)-1, 1))
			continue
		}
		target, err := w.step(name)
		switch {
		case err != nil:
			return err
		case target == "":
			continue
		case w.links == maxWalkLinks || len(rest) == 0 && w.flags&unix.O_NOFOLLOW != 0:
			return fmt.Errorf("%w: a link", ErrNotRegular)
		}
		w.links++
		if strings.HasPrefix(target, "/") {
			w.back(1)
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return nil
}

// step goes to an entry of the last directory; if that is a link, it returns what it says
// and stays.
func (w *walk) step(name string) (target string, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(w.last(), &st); err != nil {
		return "", err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return "", unix.ENOTDIR
	case !w.may(&st, mayExecute):
		return "", ErrNotAllowed
	case len(w.fds) == maxWalkDepth:
		return "", unix.ENAMETOOLONG
	}
	fd, err := unix.Openat(w.last(), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	var buf [unix.PathMax]byte
	n, err := unix.Readlinkat(fd, "", buf[:])
	if err != nil || n == 0 { // no link
		w.fds = append(w.fds, fd)
		return "", nil
	}
	return string(buf[:n]), unix.Close(fd)
}
