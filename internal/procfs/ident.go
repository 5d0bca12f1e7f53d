package procfs

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

const (
	maxCgroupBytes = 64 << 10
	// containerIDBytes is the length of the ids of docker, containerd, CRI-O and podman.
	containerIDBytes = 64
)

// CommandLine returns the arguments of a process, from at most limit bytes. The
// process may overwrite them. truncated says that there were more.
func (f FS) CommandLine(pid, limit int) (args []string, truncated bool, err error) {
	var buffer [firstRead]byte
	data, more, err := f.read(pid, "cmdline", limit, buffer[:])
	if err != nil {
		return nil, false, fmt.Errorf("read cmdline: %w", err)
	}
	// Programs that set their title pad it with NULs.
	data = bytes.TrimRight(data, "\x00")
	if len(data) == 0 {
		return nil, more, nil
	}
	return strings.Split(string(data), "\x00"), more, nil
}

// Environment returns the values of some variables in the environment that a
// process was started with, as far as they are within its first limit bytes. What
// the process has changed since does not show, but it may overwrite it. cut says that
// there were more bytes, and that those of the variables without a value may be among them.
func (f FS) Environment(pid, limit int, names ...string) (values map[string]string, cut bool, err error) {
	var buffer [firstRead]byte
	data, more, err := f.read(pid, "environ", limit, buffer[:])
	if err != nil {
		return nil, false, fmt.Errorf("read environ: %w", err)
	}
	values = map[string]string{}
	for len(data) > 0 {
		entry, rest, complete := bytes.Cut(data, []byte{0})
		data = rest
		if !complete && more {
			break
		}
		name, value, _ := bytes.Cut(entry, []byte{'='})
		for _, n := range names {
			if _, known := values[n]; !known && string(name) == n {
				values[n] = string(value)
			}
		}
	}
	return values, more && len(values) < len(names), nil
}

// Executable returns the path of the executable as the kernel shows it, and
// whether it has been deleted.
func (f FS) Executable(pid int) (path string, deleted bool, err error) {
	path, err = os.Readlink(f.path(pid, "exe"))
	if err != nil {
		return "", false, fmt.Errorf("read exe: %w", gone(err))
	}
	path, deleted = strings.CutSuffix(path, " (deleted)")
	return path, deleted, nil
}

// Cgroup is where a process is among the control groups.
type Cgroup struct {
	// Path in the hierarchy of cgroup v2, relative to the reader's cgroup namespace;
	// "" if the kernel has none.
	Path string
	// ContainerID is the id of the container that the process is in, "" if the paths
	// of its cgroups, v1 or v2, show none.
	ContainerID string
	// PodUID is the UID of the Kubernetes pod that the process is in, "" if the paths show none.
	PodUID string
}

// Cgroup returns the control groups of a process, or thread. Of one that has exited, cgroup v1 tells nothing: where
// the process lives on in other threads, they tell; else it fails with ErrNoProcess.
func (f FS) Cgroup(pid int) (Cgroup, error) {
	text, err := f.cgroup(pid)
	if err == nil && onlyRoots(text) {
		text, err = f.cgroupAlive(pid, text)
	}
	return parseCgroup(text), err
}

// onlyRoots reports whether a task is in the root of all hierarchies of cgroup v1, of which there are some: as most
// kernel threads are, and all that exit (proc_cgroup_show in kernel/cgroup/cgroup.c). From another cgroup namespace the
// root is "/..", as often as that is deep.
func onlyRoots(text string) bool {
	some := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "0::") {
			continue
		}
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		_, path, _ := strings.Cut(rest, ":")
		if strings.Trim(path, "/.") != "" {
			return false
		}
		some = true
	}
	return some
}

// cgroupAlive is what is said of a thread that does not exit where the first one does, of which something is said already.
func (f FS) cgroupAlive(pid int, said string) (string, error) {
	if st, err := f.Stat(pid); err != nil || !st.Exiting {
		return said, nil
	}
	tid, err := f.LiveThread(pid)
	if err != nil {
		return "", err
	}
	text, err := f.cgroup(tid)
	if err == nil && onlyRoots(text) {
		if st, err := f.Stat(tid); err != nil || st.Exiting { // by now
			return "", ErrNoProcess
		}
	}
	return text, err
}

func (f FS) cgroup(pid int) (string, error) {
	var buffer [firstRead]byte
	data, _, err := f.read(pid, "cgroup", maxCgroupBytes, buffer[:])
	if err != nil {
		return "", fmt.Errorf("read cgroup: %w", err)
	}
	return string(data), nil
}

// Cgroup1 reports whether the host manages its processes by cgroup v1, alone or beside v2 (systemd's legacy and hybrid
// hierarchies). Container runtimes make their groups there then.
func (f FS) Cgroup1() bool {
	text, _ := f.cgroup(1) // what cannot be read has no line
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(line, ":")
		controllers, _, _ := strings.Cut(rest, ":")
		for name := range strings.SplitSeq(controllers, ",") {
			if name == "memory" || name == "name=systemd" {
				return true
			}
		}
	}
	return false
}

// outsideCgroup begins the paths of groups outside of the reader's cgroup namespace.
const outsideCgroup = "/.."

// PrivateCgroups reports whether the reader sees groups of cgroup v2 from a namespace of its
// own, whose root is not the hierarchy's: as in most containers, but with the host's PIDs. The
// first process of the PID namespace is outside of it then.
func (f FS) PrivateCgroups() bool {
	group, err := f.Cgroup(1)
	return err == nil && strings.HasPrefix(group.Path, outsideCgroup)
}

// parseCgroup does not keep what it is given.
func parseCgroup(text string) Cgroup {
	return Cgroup{Path: strings.Clone(parseCgroupPath(text)), ContainerID: strings.Clone(parseContainerID(text)), PodUID: strings.Clone(parsePodUID(text))}
}

// parseCgroupPath finds the line "0::path" of cgroup v2. The kernel marks the path
// of a group that has been removed.
func parseCgroupPath(text string) string {
	for line := range strings.Lines(text) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok && strings.HasPrefix(path, "/") {
			return strings.TrimSuffix(path, " (deleted)")
		}
	}
	return ""
}

// parseContainerID looks through lines of "hierarchy:controllers:path" (cgroup
// v1) or "0::path" (v2). The innermost part of a path that looks like a
// container counts: inside of a container there can be systemd units, or, with
// nested runtimes, other containers.
func parseContainerID(text string) string {
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		_, path, _ := strings.Cut(rest, ":")
		for path != "" {
			i := strings.LastIndexByte(path, '/')
			if id := containerIDOf(path[i+1:]); id != "" {
				return id
			}
			path = path[:max(i, 0)]
		}
	}
	return ""
}

// containerIDOf recognizes one part of a cgroup path:
//
//	<id>                                     docker, podman, kubelet with the cgroupfs driver
//	docker-<id>.scope, crio-<id>.scope,
//	cri-containerd-<id>.scope, libpod-<id>.scope   the systemd driver
//	kubepods-podUID.slice:cri-containerd:<id>      containerd without a systemd parent
//
// conmon scopes hold the monitor of a container, which is outside of it.
func containerIDOf(part string) string {
	part = strings.TrimSuffix(part, ".scope")
	prefix, id := "", part
	if i := strings.LastIndexAny(part, "-:"); i >= 0 {
		prefix, id = part[:i], part[i+1:]
	}
	if len(id) != containerIDBytes || strings.HasSuffix(prefix, "conmon") {
		return ""
	}
	for i := range len(id) {
		if digit(id[i]) > 15 {
			return ""
		}
	}
	return id
}

// parsePodUID looks for a pod in paths of cgroups as parseContainerID does for a container. The outermost counts, which
// the kubelet of the host has made: the groups below are the pod's own.
func parsePodUID(text string) string {
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		_, path, _ := strings.Cut(rest, ":")
		path = belowPods(path)
		for part := range strings.SplitSeq(path, "/") {
			if uid := podUIDOf(part); uid != "" {
				return uid
			}
		}
	}
	return ""
}

// belowPods returns what a path has behind the group of all pods, "" if it has none. From the cgroup namespace of a pod
// that group may be among what is left out (/../../besteffort/podUID).
func belowPods(path string) string {
	if _, below, ok := strings.Cut(path, "kubepods"); ok {
		return below
	}
	if !strings.HasPrefix(path, outsideCgroup) {
		return ""
	}
	for strings.HasPrefix(path, outsideCgroup) {
		path = path[len(outsideCgroup):]
	}
	for _, class := range [...]string{"/besteffort", "/burstable"} {
		path = strings.TrimPrefix(path, class)
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first
}

// podUIDOf recognizes one part of a cgroup path behind the group of all pods:
//
//	pod<uid>                                  the cgroupfs driver
//	kubepods-burstable-pod<uid>.slice         the systemd driver, with _ for -
//	kubepods-pod<uid>.slice:cri-containerd:<id>   containerd without a systemd parent
//
// A static pod has a hash there, which is not the UID of what the API server shows of it.
func podUIDOf(part string) string {
	part, _, _ = strings.Cut(part, ":")
	part = strings.TrimSuffix(part, ".slice")
	uid, ok := strings.CutPrefix(part, "pod")
	if !ok {
		_, uid, _ = strings.Cut(part, "-pod")
	}
	if len(uid) != len("01234567-0123-0123-0123-0123456789ab") {
		return ""
	}
	for i := range len(uid) {
		switch i {
		case 8, 13, 18, 23:
			if uid[i] != '-' && uid[i] != '_' {
				return ""
			}
		default:
			if digit(uid[i]) > 15 {
				return ""
			}
		}
	}
	return strings.ReplaceAll(uid, "_", "-")
}
