//go:build linux

package executable

import (
	"debug/elf"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

const code, data = elf.PF_R | elf.PF_X, elf.PF_R | elf.PF_W

func segment(flags elf.ProgFlag, offset, vaddr, size uint64) elffile.Segment {
	return elffile.Segment{Type: elf.PT_LOAD, Flags: flags, Offset: offset, Vaddr: vaddr, Filesz: size, Memsz: size}
}

func TestBias(t *testing.T) {
	const pie = 0x555555554000
	separate := []elffile.Segment{segment(elf.PF_R, 0, 0, 0x600), segment(code, 0x1000, 0x1000, 0x3210), segment(data, 0x5dd8, 0x6dd8, 0x300)}
	for name, tc := range map[string]struct {
		machine       elf.Machine
		loads         []elffile.Segment
		start, offset uint64
		bias          uint64
		ok            bool
	}{
		"PIE":                {elf.EM_X86_64, separate, pie + 0x1000, 0x1000, pie, true},
		"split by mprotect":  {elf.EM_X86_64, separate, pie + 0x3000, 0x3000, pie, true},
		"not PIE":            {elf.EM_X86_64, []elffile.Segment{segment(code, 0x1000, 0x401000, 0x500)}, 0x401000, 0x1000, 0, true},
		"offset in the page": {elf.EM_X86_64, []elffile.Segment{segment(elf.PF_R, 0, 0, 0x6f0), segment(code, 0x6f0, 0x16f0, 0x500)}, pie + 0x1000, 0, pie, true},
		"prelinked address":  {elf.EM_X86_64, []elffile.Segment{segment(code, 0x1000, 0x7f0000001000, 0x500)}, 0x7f0000003000, 0x1000, 0x2000, true},
		"64 KiB pages":       {elf.EM_AARCH64, []elffile.Segment{segment(code, 0x15000, 0x25000, 0x500)}, pie + 0x20000, 0x10000, pie, true},
		"no such segment":    {elf.EM_X86_64, separate, pie + 0x9000, 0x9000, 0, false},
		"data segment":       {elf.EM_X86_64, separate, pie + 0x6000, 0x5000, 0, false},
		"contradiction":      {elf.EM_X86_64, []elffile.Segment{segment(code, 0, 0, 0x1000), segment(code, 0, 0x9000, 0x1000)}, pie, 0, 0, false},
		"not an ELF file":    {elf.EM_NONE, nil, pie, 0, 0, false},
		"overflow":           {elf.EM_X86_64, []elffile.Segment{segment(code, 1<<64-0x1000, 1<<64-0x1000, 1<<64-1)}, pie, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := Layout{tc.machine, tc.loads}
			bias, ok := l.Bias(tc.start, tc.offset)
			require.Equal(t, tc.ok, ok)
			if ok {
				require.Equal(t, tc.bias, bias)
			}
		})
	}
}

// What lies between two mappings of a file is its code, if all of it lies where the file has code.
func TestMoved(t *testing.T) {
	const pie = 0x555555554000
	page := uint64(os.Getpagesize())
	gnu := []elffile.Segment{segment(elf.PF_R, 0, 0, 0x600), segment(code, page, page, page+16), segment(elf.PF_R, 3*page, 3*page, 16), segment(data, 4*page-64, 5*page-64, 128)}
	lld := []elffile.Segment{segment(elf.PF_R, 0, 0, 0x600), segment(code, 0x600, page+0x600, 2*page-0x600), segment(data, 2*page, 4*page, page)}
	file := func(start, offset uint64, perms procfs.Perms) procfs.Mapping {
		return procfs.Mapping{Start: pie + start, Offset: offset, Inode: 1, Dev: 1, Perms: procfs.PermRead | perms, Path: "/own/p"}
	}
	for name, tc := range map[string]struct {
		loads        []elffile.Segment
		below, above procfs.Mapping
		start, limit uint64
		offset       uint64
		ok           bool
	}{
		"all":                    {gnu, file(0, 0, 0), file(3*page, 3*page, 0), page, 3 * page, page, true},
		"a part":                 {gnu, file(page, page, procfs.PermExec), file(3*page, 3*page, 0), 2 * page, 3 * page, 2 * page, true},
		"lld":                    {lld, file(0, 0, 0), file(4*page, 2*page, procfs.PermWrite), page, 3 * page, 0, true},
		"begins before the code": {gnu, file(0, 0, 0), file(3*page, 3*page, 0), 0, 2 * page, 0, false},
		"ends behind the code":   {gnu, file(0, 0, 0), file(3*page, 3*page, 0), page, 4 * page, 0, false},
		"no code there":          {gnu, file(0, 0, 0), file(3*page, 3*page, 0), 6 * page, 7 * page, 0, false},
		"data":                   {gnu, file(0, 0, 0), file(3*page, 3*page, 0), 4 * page, 6 * page, 0, false},
		"two copies":             {gnu, file(0, 0, 0), file(9*page, 0, 0), page, 2 * page, 0, false},
		"two meanings":           {append(slices.Clone(gnu), segment(elf.PF_R, 0, page, 0x600), segment(elf.PF_R, 3*page, 4*page, 16)), file(0, 0, 0), file(3*page, 3*page, 0), page, 2 * page, 0, false},
		"nothing":                {gnu, file(0, 0, 0), file(3*page, 3*page, 0), page, page, 0, false},
		"no ELF file":            {nil, file(0, 0, 0), file(3*page, 3*page, 0), page, 2 * page, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFile(procfs.FileID{Inode: 1}, "/p", Facts{Layout: Layout{elf.EM_X86_64, tc.loads}}, nil)
			anonymous := Mapping{Start: pie + tc.start, Limit: pie + tc.limit}
			m := anonymous
			m.copies(f, &Around{tc.below, tc.above})
			if !tc.ok {
				require.Equal(t, anonymous, m)
				return
			}
			require.Equal(t, Mapping{
				Start: pie + tc.start, Limit: pie + tc.limit, Offset: tc.offset, File: f, Path: "/own/p", Dev: 1, Inode: 1,
				Bias: pie, Biased: true, Moved: true,
			}, m)
			require.True(t, m.Shows(&procfs.Mapping{Start: m.Start, Limit: m.Limit}))
			require.False(t, m.Shows(&procfs.Mapping{Start: m.Start, Limit: m.Limit, Offset: m.Offset, Dev: 1, Inode: 1}))
			require.False(t, m.Shows(&procfs.Mapping{Start: m.Start, Limit: m.Limit + page}))
		})
	}
}

// Pages of which two segments say different things are nobody's, however many a file says there are.
func TestTexts(t *testing.T) {
	page := uint64(os.Getpagesize())
	require.Equal(t, []record.FileText{
		{FirstPage: 0, LimitPage: 2, Text: 0x400000},
		{FirstPage: 2, LimitPage: 3, Text: 0x400000 - int64(page)},
	}, (&Layout{elf.EM_X86_64, []elffile.Segment{segment(code, 0, 0, page+0x500), segment(code, page+0x500, 2*page+0x500, page)}}).texts(0x400000))
	for size, texts := range map[uint64]int{1 << 40: 1, 1 << 50: 0, 1 << 63: 0, 1<<64 - 1: 0} {
		contradicts := Layout{elf.EM_X86_64, []elffile.Segment{segment(code, page, page, size), segment(code, 2*page, 0x10002000, size)}}
		require.Len(t, contradicts.texts(0), texts, "%#x", size)
	}
}

// TestComplete shows a library as the dynamic loader maps it, step by step.
func TestComplete(t *testing.T) {
	const bias, dev, inode = 0x7f0000000000, 1, 2
	l := Layout{elf.EM_X86_64, []elffile.Segment{segment(elf.PF_R, 0, 0, 0x600), segment(code, 0x1000, 0x1000, 0x1210), segment(data, 0x2dd8, 0x3dd8, 0x300)}}
	mapping := func(start, limit, offset uint64) procfs.Mapping {
		return procfs.Mapping{Start: bias + start, Limit: bias + limit, Offset: offset, Dev: dev, Inode: inode}
	}
	whole := []procfs.Mapping{mapping(0, 0x5000, 0)}
	withCode := []procfs.Mapping{mapping(0, 0x1000, 0), mapping(0x1000, 0x3000, 0x1000), mapping(0x3000, 0x5000, 0x3000)}
	withData := []procfs.Mapping{mapping(0, 0x1000, 0), mapping(0x1000, 0x3000, 0x1000), mapping(0x3000, 0x5000, 0x2000)}
	split := []procfs.Mapping{mapping(0, 0x1000, 0), mapping(0x1000, 0x3000, 0x1000), mapping(0x3000, 0x4000, 0x2000), mapping(0x4000, 0x5000, 0x3000)}
	for i, mappings := range [][]procfs.Mapping{nil, whole, withCode, split[:3]} {
		require.False(t, l.Complete(bias, dev, inode, mappings), "%d", i)
	}
	for i, mappings := range [][]procfs.Mapping{withData, split} {
		require.True(t, l.Complete(bias, dev, inode, mappings), "%d", i)
		require.False(t, l.Complete(bias, dev, inode+1, mappings), "another file")
		require.False(t, l.Complete(bias+0x1000, dev, inode, mappings), "another place")
	}
}

func TestFindMapping(t *testing.T) {
	mappings := []procfs.Mapping{{Start: 0x1000, Limit: 0x2000}, {Start: 0x3000, Limit: 0x4000}}
	for addr, want := range map[uint64]*procfs.Mapping{
		0xfff: nil, 0x1000: &mappings[0], 0x1fff: &mappings[0], 0x2000: nil, 0x2fff: nil, 0x3000: &mappings[1], 0x4000: nil,
	} {
		require.Same(t, want, findMapping(mappings, addr), "%#x", addr)
	}
}
