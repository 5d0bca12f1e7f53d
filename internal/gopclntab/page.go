package gopclntab

import (
	"errors"
	"io"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

const (
	pageBytes = 4 << 10
	// maxPages bounds the memory of a Reader: 256 KiB. An address needs some 20.
	maxPages = 256 << 10 / pageBytes
	// recentPages are as many as tables are read at once, and more.
	recentPages = 16
	noPage      = 1<<64 - 1
)

// pages reads a file by pages and keeps those used last, roughly.
type pages struct {
	r      io.ReaderAt
	memory []byte // outside of Go's heap, for maxPages; empty: the pages are of Go's
	// Each page that is kept has a slot. The hand goes around and takes the slot of
	// the first page that was not used since it passed by.
	slots  []page
	byPage map[uint64]int
	hand   int
	// recent has slots by the lowest bits of the numbers of their pages: to look there first
	// is faster.
	recent [recentPages]int
}

type page struct {
	number uint64 // or noPage
	data   []byte // shorter than a page at the end of the file
	used   bool
}

// page returns the bytes of a page, valid until the next call.
func (p *pages) page(number uint64) ([]byte, error) {
	recent := &p.recent[number%recentPages]
	if i := *recent; i < len(p.slots) && p.slots[i].number == number {
		p.slots[i].used = true
		return p.slots[i].data, nil
	}
	if i, ok := p.byPage[number]; ok {
		p.slots[i].used = true
		*recent = i
		return p.slots[i].data, nil
	}
	i := p.free()
	s := &p.slots[i]
	s.number = noPage
	if s.data == nil {
		s.data = p.memoryOf(i)
	}
	n, err := p.r.ReadAt(s.data[:pageBytes], int64(number*pageBytes))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	s.data, s.number, s.used = s.data[:n], number, true
	p.byPage[number], *recent = i, i
	return s.data, nil
}

func (p *pages) memoryOf(slot int) []byte {
	if from := slot * pageBytes; from < len(p.memory) {
		return p.memory[from:][:pageBytes:pageBytes]
	}
	return make([]byte, pageBytes)
}

// free returns a slot that holds no page.
func (p *pages) free() int {
	if len(p.slots) < maxPages {
		p.slots = append(p.slots, page{})
		return len(p.slots) - 1
	}
	for {
		i := p.hand
		p.hand = (p.hand + 1) % maxPages
		s := &p.slots[i]
		if !s.used {
			delete(p.byPage, s.number)
			return i
		}
		s.used = false
	}
}

// at returns some bytes of the file from off on, at least one, at most up to the end
// of a page; valid until the next call.
func (p *pages) at(off uint64) ([]byte, error) {
	if off >= 1<<63 {
		return nil, &elffile.FormatError{Off: off, Msg: "offset outside of the file"}
	}
	b, err := p.page(off / pageBytes)
	if err != nil {
		return nil, err
	}
	if at := off % pageBytes; at < uint64(len(b)) {
		return b[at:], nil
	}
	return nil, io.ErrUnexpectedEOF
}

// fill reads len(b) bytes from off on.
func (p *pages) fill(b []byte, off uint64) error {
	for len(b) > 0 {
		got, err := p.at(off)
		if err != nil {
			return err
		}
		n := copy(b, got)
		b, off = b[n:], off+uint64(n)
	}
	return nil
}
