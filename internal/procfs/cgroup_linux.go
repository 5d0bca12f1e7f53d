package procfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNoCgroup2 says that cgroup v2 is not mounted in a usual place.
var ErrNoCgroup2 = errors.New("cgroup v2 is mounted neither at /sys/fs/cgroup nor at /sys/fs/cgroup/unified")

// CgroupFS is a mounted hierarchy of cgroup v2.
type CgroupFS struct {
	Root string // mount point; "" knows no cgroup
}

// FindCgroupFS looks where the hierarchy of cgroup v2 is mounted, beside v1 or alone.
func FindCgroupFS() (CgroupFS, error) {
	for _, dir := range [...]string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err == nil && st.Type == unix.CGROUP2_SUPER_MAGIC {
			return CgroupFS{Root: dir}, nil
		}
	}
	return CgroupFS{}, ErrNoCgroup2
}

// ID returns the id of a cgroup by its path, as samples have it and
// bpf_get_current_cgroup_id() returns it: the inode of its directory.
func (c CgroupFS) ID(path string) (uint64, error) {
	if c.Root == "" || path == "" || strings.HasPrefix(path, outsideCgroup) {
		return 0, fmt.Errorf("find cgroup: %w", os.ErrNotExist) // outside of what is mounted
	}
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(c.Root, path), &st); err != nil {
		return 0, fmt.Errorf("find cgroup: %w", err)
	}
	return st.Ino, nil
}
