package procfs

import (
	"cmp"
	"os"
	"slices"
	"strconv"
)

// Threads returns the ids of at most limit threads of a process, its main thread first and
// the others in ascending order, and whether there are more.
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
	slices.SortFunc(tids, func(a, b int) int {
		switch pid { // ids start again at the bottom when the kernel runs out of them
		case a:
			return -1
		case b:
			return 1
		}
		return cmp.Compare(a, b)
	})
	return tids[:min(len(tids), limit)], len(tids) > limit, nil
}
