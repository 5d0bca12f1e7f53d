package record

import (
	"math/bits"
	"os"
)

// Pages of UnwindPageBytes that the table takes: rules, index and rows begin one each.
func (t *UnwindTable) Pages() int {
	pages := func(n, each int) int { return (n + each - 1) / each }
	return pages(max(len(t.Rules), 1), UnwindPageBytes/UnwindRuleBytes) + pages(len(t.Index), UnwindPageBytes/4) + pages(len(t.Rows), UnwindPageBytes/4)
}

const (
	// unwindMapBytes is the head of a table's map in the kernel: struct bpf_array.
	unwindMapBytes = 512
	// wholePages is up to how many pages the kernel rounds an allocation up to a power of two
	// (bpf_map_area_alloc, PAGE_ALLOC_COSTLY_ORDER); a larger one has whole pages.
	wholePages = 8
)

// KernelBytes is the memory that the table takes in the kernel.
func (t *UnwindTable) KernelBytes() int {
	return mapAreaBytes(t.Pages()*UnwindPageBytes+unwindMapBytes, os.Getpagesize())
}

// mapAreaBytes is what an allocation for a map takes.
func mapAreaBytes(n, page int) int {
	if n <= wholePages*page {
		return 1 << bits.Len(uint(n-1))
	}
	return (n + page - 1) / page * page
}
