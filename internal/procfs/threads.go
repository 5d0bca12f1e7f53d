package procfs

import (
	"os"
	"slices"
	"strconv"
)

// Threads returns the ids of at most limit threads of a process, in ascending
// order, and whether there are more.
func (f FS) Threads(pid, limit int) (tids []int, more bool, err error) {
	dir, err := os.Open(f.path(pid, "task"))
	if err != nil {
		return nil, false, gone(err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(limit + 1)
	if err != nil && len(names) == 0 {
		return nil, false, gone(err)
	}
	for _, name := range names {
		if tid, err := strconv.Atoi(name); err == nil {
			tids = append(tids, tid)
		}
	}
	slices.Sort(tids)
	return tids[:min(len(tids), limit)], len(tids) > limit, nil
}
