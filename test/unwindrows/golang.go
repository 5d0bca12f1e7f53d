package unwindrows

import (
	"errors"
	"io"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/gopclntab"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Reasons for which rows of Go's functions, which are made of pclntab, differ from
// .debug_frame.
const (
	ReasonGoFrame  = "Go: .debug_frame knows no frame register, pclntab does"
	ReasonGoSwitch = "Go: function that goes to another stack, or starts one: by its frame register, or end"
	ReasonGoSignal = "Go: signal trampoline"
	ReasonGoMoved  = "Go: .debug_frame has the return address at the stack pointer where assembler has moved that"
	ReasonGoStart  = "Go: .debug_frame says that nothing is pushed where assembler leaves by a jump"
)

// goRange is a function of the Go compiler.
type goRange struct {
	start, end uint64
	switches   bool // the stack; or has no caller
}

// goFunctions returns the functions that pclntab has, in ascending order.
func goFunctions(e *elffile.File, file io.ReaderAt) (all []goRange, err error) {
	table, err := gopclntab.Find(e)
	if errors.Is(err, gopclntab.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = gopclntab.NewReader(table, file).Functions(func(f gopclntab.Func) bool {
		all = append(all, goRange{f.Entry, f.End, f.Flags&(gopclntab.SPWrite|gopclntab.TopFrame) != 0})
		return true
	})
	slices.SortFunc(all, func(a, b goRange) int { return int(int64(a.start - b.start)) })
	return all, err
}

// goFunction finds the Go function at an address.
func (v *view) goFunction(vaddr uint64) (goRange, bool) {
	i, ok := slices.BinarySearchFunc(v.golang, vaddr, func(g goRange, vaddr uint64) int { return int(int64(g.start - vaddr)) })
	if !ok {
		i--
	}
	if i < 0 || vaddr >= v.golang[i].end {
		return goRange{}, false
	}
	return v.golang[i], true
}

// goAddress compares at an address in a Go function that .debug_frame describes.
func (c *comparison) goAddress(g goRange, got record.UnwindRule, want expected) (reason string, ok bool) {
	switch {
	case got.CFA == record.CFASignal:
		return ReasonGoSignal, true
	case g.switches:
		return ReasonGoSwitch, got.CFA == record.CFASwitch || got.CFA == record.CFAEnd
	}
	entry := int32(8)
	if c.ref.aarch64 {
		entry = 0
	}
	for _, w := range want.rules {
		if w.CFA == record.CFASP && w.CFAOffset < entry && got.CFA == record.CFANone {
			return ReasonGoStart, true
		}
		if w.CFA == got.CFA && w.CFAOffset == got.CFAOffset && w.RA == got.RA && w.RAOffset == got.RAOffset {
			return ReasonGoFrame, true
		}
		if c.ref.aarch64 && w.CFA == got.CFA && w.CFAOffset == got.CFAOffset && w.RAOffset == -w.CFAOffset && got.RAOffset > w.RAOffset {
			return ReasonGoMoved, true
		}
	}
	return "", false
}
