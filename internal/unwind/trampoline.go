package unwind

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

const (
	// maxTrampolines bounds what is found without call frame information; a C
	// library has one or two.
	maxTrampolines = 64

	// searchWindowBytes are read at a time: enough for the gaps between many
	// small functions.
	searchWindowBytes = 16 << 10

	// Lengths of the shortest and the longest code below, of signal trampolines and of all.
	minTrampolineBytes = 7
	maxTrampolineBytes = 9
	maxCodeBytes       = 16
)

// trampolines are what a signal handler may return to: rt_sigreturn with the
// least that it takes. lead is by how much earlier a row starts, because return
// addresses are looked up with an address in the instruction before, the call.
func (a arch) trampolines() (codes [2]string, lead, align uint64) {
	if a.machine == elf.EM_AARCH64 {
		return [2]string{
			"\x68\x11\x80\xd2\x01\x00\x00\xd4", // mov x8, #139; svc #0
			"\x68\x11\x80\x52\x01\x00\x00\xd4", // mov w8, #139; svc #0
		}, 4, 4
	}
	return [2]string{
		"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", // mov $15, %rax; syscall
		"\xb8\x0f\x00\x00\x00\x0f\x05",         // mov $15, %eax; syscall
	}, 1, 1
}

// findTrampoline returns where the first trampoline in b is, and its length.
func (a arch) findTrampoline(b []byte, vaddr uint64) (at, n int) {
	codes, _, align := a.trampolines()
	at = -1
	for _, code := range codes {
		for from := 0; ; from++ {
			i := bytes.Index(b[from:], []byte(code))
			if i < 0 {
				break
			}
			if from += i; (vaddr+uint64(from))%align == 0 {
				if at < 0 || from < at {
					at, n = from, len(code)
				}
				break
			}
		}
	}
	return at, n
}

// signalFDE takes up an FDE of a signal frame by its code: on aarch64 rules
// describe such a frame in too many ways.
func (b *builder) signalFDE(start, end uint64) error {
	var code [64]byte
	found := -1
	if b.signalFDEs++; b.signalFDEs <= maxSignalFDEs {
		n := min(end-start, uint64(len(code)))
		if err := b.file.ReadVaddr(code[:n], start); err == nil {
			found, _ = b.machine.findTrampoline(code[:n], start)
		}
	}
	if found < 0 {
		b.stats.Counts[ReasonSignal]++
		return nil
	}
	return b.signalSpan(start, end)
}

// signalSpan takes up a signal frame. In the system call that it ends with, the address is
// the one behind, where another function may begin, whose rows then hold.
func (b *builder) signalSpan(start, end uint64) error {
	if _, lead, _ := b.machine.trampolines(); b.executable(start, end+lead) {
		end += lead
	}
	b.begin(start, end-start)
	if !b.add(end-start, b.ruleNumber(record.UnwindRule{CFA: record.CFASignal})) {
		return &LimitError{"rows", uint64(b.limits.Rows)}
	}
	return nil
}

// searchTrampolines adds the trampolines in text that no span covers. The spans
// are sorted, and are afterwards.
func (b *builder) searchTrampolines() error {
	s := search{b: b, budget: b.limits.SearchBytes, known: len(b.spans)}
	for _, t := range b.text {
		at := t.start
		first, _ := slices.BinarySearchFunc(b.spans[:s.known], t.start, func(x span, start uint64) int {
			return cmp.Compare(uint64(x.start)+b.origin, start)
		})
		for i := first; i < s.known && b.origin+uint64(b.spans[i].start) < t.end; i++ {
			start := b.origin + uint64(b.spans[i].start)
			if i > first && at < start && at == b.origin+b.spans[i-1].end() {
				if err := s.clone(&b.spans[i-1], at, start); err != nil {
					return err
				}
			}
			if err := s.gap(at, start); err != nil {
				return err
			}
			if at < start {
				if err := s.context(&b.spans[i], t.end); err != nil {
					return err
				}
			}
			at = max(at, b.origin+b.spans[i].end())
		}
		if err := s.gap(at, t.end); err != nil {
			return err
		}
	}
	b.stats.Trampolines = len(b.spans) - s.known - b.stats.Clones
	if len(b.spans) > s.known {
		b.sort()
	}
	return nil
}

// search looks for trampolines in ascending order of addresses.
type search struct {
	b      *builder
	budget uint64 // bytes of text to look at
	known  int    // spans from call frame information
	buf    []byte // text from at on
	at     uint64
}

// text returns up to n bytes at an address, valid until the next call.
func (s *search) text(vaddr, n, limit uint64) ([]byte, error) {
	n = min(n, limit-vaddr, searchWindowBytes)
	if vaddr >= s.at && vaddr+n <= s.at+uint64(len(s.buf)) {
		return s.buf[vaddr-s.at:][:n], nil
	}
	if s.buf == nil {
		s.buf = make([]byte, 0, searchWindowBytes)
	}
	end := vaddr + n
	for _, t := range s.b.text {
		if vaddr >= t.start && vaddr < t.end {
			end = t.end
		}
	}
	s.at, s.buf = vaddr, s.buf[:min(end-vaddr, searchWindowBytes)]
	if err := s.b.file.ReadVaddr(s.buf, vaddr); err != nil {
		s.buf = s.buf[:0]
		return nil, fmt.Errorf("read text: %w", err)
	}
	return s.buf[:n], nil
}

// gap searches [start, end).
func (s *search) gap(start, end uint64) error {
	_, lead, _ := s.b.machine.trampolines()
	for at := start; at < end && end-at >= minTrampolineBytes && s.budget > 0; {
		if len(s.b.spans)-s.known == maxTrampolines {
			return nil
		}
		b, err := s.text(at, min(end-at, s.budget+maxCodeBytes), end)
		if err != nil {
			return err
		}
		i, n := s.b.machine.findTrampoline(b, at)
		next := at + uint64(len(b))
		if j := s.b.machine.findThread(b, at); j >= 0 && (i < 0 || j < i) {
			start = at + uint64(j+len(threadCode))
			next = start
			s.b.stats.Clones++
			if err := s.b.constant(next-uint64(len(threadCode)), next, record.UnwindRule{CFA: record.CFAEnd}); err != nil {
				return err
			}
		} else if i >= 0 {
			found := at + uint64(i)
			next = found + uint64(n)
			if err := s.b.signalSpan(max(start, found-lead), next); err != nil {
				return err
			}
			start = next
		} else if next < end && len(b) >= maxCodeBytes {
			next -= maxCodeBytes - 1 // one may go on behind what was read
		}
		s.budget -= min(s.budget, next-at)
		at = next
	}
	return nil
}
