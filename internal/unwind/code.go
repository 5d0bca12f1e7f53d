package unwind

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/codeframes"
	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

const (
	// minGapBytes is the least text between two descriptions that is looked at. What is
	// shorter fills the space up to where the next function is aligned.
	minGapBytes = 16

	// symbolsFromBytes of text without descriptions make it worth reading the symbols. Less
	// is what compilers bring to begin a program.
	symbolsFromBytes = 4 << 10

	// minFunctionBytes bounds the symbols that are taken of such text; few functions are as short.
	minFunctionBytes = 4

	// codeWork is what codeframes.PaceSteps instructions count of what is read of the file.
	codeWork = 64 << 10
)

// followCode adds rows for text that nothing describes, from its instructions. Of a file that
// is described, that is next to nothing. The spans are sorted, and are afterwards.
func (b *builder) followCode() error {
	gaps, total := b.undescribed()
	if total <= uint64(b.limits.CodeBytes) {
		if added, err := b.follow(gaps, total); added || err != nil {
			return err
		}
	}
	// More is not compiled: V8's builtins, for instance, keep frame pointers. What the program begins in need not.
	gaps, total = only(gaps, b.file.Entry)
	if total > uint64(b.limits.CodeBytes) {
		return nil
	}
	_, err := b.follow(gaps, total)
	return err
}

// follow adds rows for some text of that size, if there is room for all of them.
func (b *builder) follow(gaps []addresses, size uint64) (added bool, err error) {
	b.stats.CodeBytes = 0
	if size == 0 {
		return true, nil
	}
	code := codeframes.Code{Machine: b.machine.machine, Entry: b.file.Entry}
	if err := b.holdMore(Held{Heap: CodeHeldBytes * int(size)}); err != nil {
		return false, err
	}
	for _, gap := range gaps {
		text := make([]byte, gap.end-gap.start)
		if err := b.file.ReadVaddr(text, gap.start); err != nil {
			return false, fmt.Errorf("read text: %w", err)
		}
		b.stats.CodeBytes += len(text)
		code.Regions = append(code.Regions, codeframes.Region{Start: gap.start, Code: text})
	}
	if b.stats.CodeBytes >= symbolsFromBytes {
		// Without symbols, less is known: that is no error.
		_ = b.file.Functions(func(fn elffile.Function) bool {
			// gcc names the part of a function that it puts elsewhere.
			if within(gaps, fn.Value) && !bytes.Contains(fn.Name, []byte(".cold")) {
				code.Functions = append(code.Functions, fn.Value)
			}
			return len(code.Functions) < min(b.limits.Functions, b.stats.CodeBytes/minFunctionBytes)
		})
	}
	code.Pace = func() error { return b.file.Work(codeWork) }
	rows, err := codeframes.Rows(&code)
	if err != nil {
		return false, fmt.Errorf("follow code: %w", err)
	}
	spans, count := len(b.spans), len(b.rows)
	if !b.addCode(rows) { // what was described is as good as without
		b.forget(spans, count)
		return false, nil
	}
	if b.stats.FromCode = len(b.spans) - spans; b.stats.FromCode > 0 {
		b.sort()
	}
	return true, nil
}

// codeSections have all code but linkage tables, in the order in which linkers put them.
var codeSections = [...]string{".init", ".text", ".fini"}

// code returns the addresses between which code lies, as far as sections tell: other sections
// of an executable segment are data.
func (b *builder) code() addresses {
	of := addresses{start: math.MaxUint64}
	for _, name := range codeSections {
		if s, ok, err := b.file.Section(name); err == nil && ok && s.Size > 0 && b.executable(s.Addr, s.Addr+s.Size) {
			of.start, of.end = min(of.start, s.Addr), max(of.end, s.Addr+s.Size)
		}
	}
	if of.end == 0 {
		return addresses{0, math.MaxUint64}
	}
	return of
}

// within reports whether an address lies in one of several parts, which are in ascending order.
func within(parts []addresses, vaddr uint64) bool {
	n, found := slices.BinarySearchFunc(parts, vaddr, func(p addresses, v uint64) int { return cmp.Compare(p.start, v) })
	return found || n > 0 && vaddr < parts[n-1].end
}

// only returns the part that an address lies in, and its size.
func only(parts []addresses, vaddr uint64) (part []addresses, size uint64) {
	for i, p := range parts {
		if p.start <= vaddr && vaddr < p.end {
			return parts[i : i+1], p.end - p.start
		}
	}
	return nil, 0
}

// undescribed returns the text that no span covers, and its size. Of more than is followed, what is returned beyond
// that is only what the program begins in.
func (b *builder) undescribed() (gaps []addresses, total uint64) {
	add := func(start, end uint64) {
		if end <= start || end-start < minGapBytes {
			return
		}
		total += end - start
		if total <= uint64(b.limits.CodeBytes) || start <= b.file.Entry && b.file.Entry < end {
			gaps = append(gaps, addresses{start, end})
		}
	}
	next, code := 0, b.code()
	for _, t := range b.text {
		t = addresses{max(t.start, code.start), min(t.end, code.end)}
		at := t.start
		for ; next < len(b.spans) && b.origin+uint64(b.spans[next].start) < t.end; next++ {
			s := b.spans[next]
			add(at, min(b.origin+uint64(s.start), t.end))
			at = max(at, b.origin+s.end())
		}
		add(at, t.end)
	}
	return gaps, total
}

// addCode adds a span for rows that follow each other. It returns false when there are too
// many.
func (b *builder) addCode(rows []codeframes.Row) bool {
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Start == rows[n-1].End {
			n++
		}
		b.begin(rows[0].Start, rows[n-1].End-rows[0].Start)
		for _, r := range rows[:n] {
			if !b.add(r.End-r.Start, b.ruleNumber(r.Rule)) {
				return false
			}
		}
		rows = rows[n:]
	}
	return true
}
