package gopclntab

import (
	"errors"
	"io"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

const (
	pageBytes = 8 << 10
	// maxPages bounds the memory of a Reader: 1 MiB.
	maxPages = 1 << 20 / pageBytes
)

// pages reads a file by pages and keeps those used last, roughly.
type pages struct {
	r io.ReaderAt
	// Each page that is kept has a slot. The hand goes around and takes the slot of
	// the first page that was not used since it passed by.
	slots  []page
	byPage map[uint64]int
	hand   int
}

type page struct {
	number uint64
	data   []byte // shorter than a page at the end of the file
	used   bool
}

// page returns the bytes of a page, valid until the next call.
func (p *pages) page(number uint64) ([]byte, error) {
	if i, ok := p.byPage[number]; ok {
		p.slots[i].used = true
		return p.slots[i].data, nil
	}
	i := p.free()
	data := p.slots[i].data[:cap(p.slots[i].data)]
	if data == nil {
		data = make([]byte, pageBytes)
	}
	n, err := p.r.ReadAt(data, int64(number*pageBytes))
	p.slots[i].data = data[:n]
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err // the slot stays free
	}
	p.slots[i].number, p.slots[i].used = number, true
	p.byPage[number] = i
	return p.slots[i].data, nil
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
			// It may hold none, after a failure.
			if at, ok := p.byPage[s.number]; ok && at == i {
				delete(p.byPage, s.number)
			}
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
