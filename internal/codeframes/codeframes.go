package codeframes

import (
	"debug/elf"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Region is code at a virtual address.
type Region struct {
	Start uint64
	Code  []byte
}

// Code is that of a file, or a part of it.
type Code struct {
	Machine elf.Machine // EM_X86_64 or EM_AARCH64
	// Regions in ascending order, which do not overlap, of less than 1 GiB together.
	Regions []Region
	// Functions are addresses at which functions begin, in any order; those outside of the
	// regions are passed over.
	Functions []uint64
	// Entry is where a process may begin.
	Entry uint64
	// Pace is called after each PaceSteps instructions that are followed. Its error ends that. It may be nil.
	Pace func() error
}

// PaceSteps are the instructions that are followed between two calls of Code.Pace.
const PaceSteps = 4 << 10

// Row says which rule holds in [Start, End).
type Row struct {
	Start, End uint64
	Rule       record.UnwindRule
}

// Rows follows code and returns a row for each part of it in which the caller of a frame is
// known, in ascending order. The error is Code.Pace's.
func Rows(c *Code) ([]Row, error) {
	m := x86Machine()
	if c.Machine == elf.EM_AARCH64 {
		m = arm64Machine()
	}
	f := newFlows(m, c.Regions)
	f.pace = c.Pace
	for _, vaddr := range c.Functions {
		f.known(vaddr)
	}
	f.known(c.Entry)
	sane := f.rounds()
	if f.steps <= 0 {
		return nil, f.err // what was followed in part is not known
	}
	return f.rows(sane, f.beginner(c.Entry)), nil
}

// known notes that a function begins at an address, if that lies in a region.
func (f *flows) known(vaddr uint64) {
	if at, ok := f.offset(vaddr); ok {
		f.addStart(at)
	}
}

// beginner returns the function at the entry if it is where a process begins: nothing has called
// it, from its first instruction on. Else noFunction: libraries have entries, too.
func (f *flows) beginner(entry uint64) int32 {
	begin, ok := f.offset(entry)
	if !ok || f.at[begin] == 0 {
		return noFunction
	}
	for at, owner := range f.owner {
		if owner == f.owner[begin] && f.states[f.at[at]].outermost {
			return owner
		}
	}
	return noFunction
}

const (
	// maxRounds bounds how often the functions that were found by trying are taken for known
	// ones, which call others.
	maxRounds = 6
	// enough is the share of functions, one in so many, that makes another round worth it.
	enough = 32
)

// rounds follows all code, and reports whether most functions return, and do it right.
func (f *flows) rounds() (sane bool) {
	for round := 1; ; round++ {
		f.passes()
		sane = f.sane()
		starts, known := f.numStarts, len(f.functions)
		f.tryRest(sane)
		if f.steps <= 0 {
			return sane
		}
		for _, fn := range f.functions[known:] {
			f.addStart(fn.start)
		}
		if round == maxRounds || enough*(f.numStarts-starts) <= starts {
			return sane
		}
	}
}

// maxSilent functions of a small file need not return: those that begin programs do not.
const maxSilent = 4

// sane reports whether most functions that are known return, and do it right.
func (f *flows) sane() bool {
	wrong, silent := 0, 0 // silent: it never returns, or goes on where a register leads to that it has to keep
	for n := range f.functions {
		switch fn := f.owned(int32(n)); {
		case fn.wrong:
			wrong++
		case !fn.returned && (!fn.leaves || fn.hops):
			silent++
		}
	}
	return 4*wrong <= len(f.functions) && 2*silent <= len(f.functions)+2*maxSilent
}

const (
	// bytesPerRow bounds the rows, but for some. Files have one for each 14 bytes at most.
	bytesPerRow = 4
	fewRows     = 1024
)

// rows makes rows of the states; one function may be where a process begins. Of what takes
// too many, there are none.
func (f *flows) rows(sane bool, beginner int32) (rows []Row) {
	most := f.bytes/bytesPerRow + fewRows
	for n := range f.regions {
		r := &f.regions[n]
		for at := range r.Code {
			num := f.at[r.base+at]
			if num == 0 {
				continue
			}
			fn := f.owned(f.owner[r.base+at])
			rule, believed := f.states[num].rule(), !fn.wrong && (fn.returned || sane)
			if beginner != noFunction && f.owner[r.base+at] == beginner {
				// It cannot return. Where it seems to, a call that never does so is its end: of abort, in glibc's.
				rule, believed = record.UnwindRule{CFA: record.CFAEnd}, true
			}
			if !believed || rule == (record.UnwindRule{}) {
				continue
			}
			i := f.decode(r.Code, at, r.Start+uint64(at))
			start := r.Start + uint64(at)
			end := start + uint64(i.size)
			if last := len(rows) - 1; last >= 0 && rows[last].End >= start {
				if rows[last].Rule == rule {
					rows[last].End = max(rows[last].End, end)
					continue
				}
				rows[last].End = start // jumps into the middle of an instruction
			}
			count := len(rows)
			if count >= most {
				return nil
			}
			if count == cap(rows) { // append alone would copy them more often
				rows = append(make([]Row, 0, max(most/8+1, min(2*count, most))), rows...)
			}
			rows = append(rows, Row{start, end, rule})
		}
	}
	return rows
}
