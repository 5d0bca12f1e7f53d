package writercheck

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// Layout of a thread context record (OTEP 4947, "Thread-Local Context Record").
const (
	traceIDBytes  = 16
	recordValid   = 24
	recordFlags   = 25
	recordSize    = 26
	recordHead    = 28
	entryHead     = 2
	maxRecord     = 640
	maxAttributes = 1<<16 - 1
)

// contextRecord is the record that a thread had published when it was stopped.
type contextRecord struct {
	addr  uint64
	err   error // why it could not be read
	head  [recordHead]byte
	attrs []byte
	// attrsErr says why the attributes that the head promises could not be read.
	attrsErr error
}

// readContextRecord copies a record while the thread stands still.
func readContextRecord(mem Memory, addr uint64) *contextRecord {
	r := &contextRecord{addr: addr}
	if r.err = mem.ReadAt(r.head[:], addr); r.err != nil || r.head[recordValid] != 1 {
		return r
	}
	if n := binary.LittleEndian.Uint16(r.head[recordSize:]); n > 0 {
		attrs := make([]byte, n)
		if r.attrsErr = mem.ReadAt(attrs, addr+recordHead); r.attrsErr == nil {
			r.attrs = attrs
		}
	}
	return r
}

// parseContextRecord takes a record from a label block of package labelread.
func parseContextRecord(payload []byte) (*contextRecord, bool) {
	if len(payload) < recordHead {
		return nil, false
	}
	r := &contextRecord{attrs: payload[recordHead:]}
	copy(r.head[:], payload)
	return r, true
}

// judge counts what holds of a record. It reports whether it is one that readers take over, and
// whether a rule is broken.
func (r *contextRecord) judge(t *tally, f Format) (present, ok bool) {
	if !t.check(f.rule(ruleRecord), r.err == nil, "record at %#x: %v", r.addr, said(r.err)) {
		return false, false
	}
	valid := r.head[recordValid]
	if f == ThreadContext {
		ok = t.check(f.rule(ruleAlignment), r.addr%2 == 0, "record at %#x", r.addr)
		ok = t.check(f.rule(ruleValid), valid <= 1, "record at %#x: valid is %d", r.addr, valid) && ok
	} else {
		ok = true
	}
	if valid != 1 {
		return false, ok
	}
	trace, span := r.head[:traceIDBytes], r.head[traceIDBytes:recordValid]
	noTrace, noSpan := zero(trace), zero(span)
	ok = t.check(f.rule(ruleIDs), noTrace == noSpan, "trace id %x, span id %x", trace, span) && ok
	if noTrace && noSpan {
		ok = t.check(f.rule(ruleFlags), r.head[recordFlags] == 0, "no ids and flags %#x", r.head[recordFlags]) && ok
	}
	size := int(binary.LittleEndian.Uint16(r.head[recordSize:]))
	t.check(f.rule(ruleRecordSize), recordHead+size <= maxRecord, "a record of %d bytes", recordHead+size)
	whole := r.attrsErr == nil && r.entries(func(_ byte, value []byte) {
		ok = t.check(f.rule(ruleText), utf8.Valid(value), "%q", value) && ok
	})
	ok = t.check(f.rule(ruleAttributes), whole, "%s", r.attributesText(size)) && ok
	return true, ok
}

func (r *contextRecord) attributesText(size int) string {
	if r.attrsErr != nil {
		return fmt.Sprintf("attrs-data-size %d: %v", size, r.attrsErr)
	}
	return fmt.Sprintf("attrs-data-size %d, bytes % x", size, r.attrs[:min(len(r.attrs), 64)])
}

// entries visits the attributes. It reports whether nothing is left at the end.
func (r *contextRecord) entries(visit func(index byte, value []byte)) (whole bool) {
	for b := r.attrs; ; {
		if len(b) < entryHead || len(b) < entryHead+int(b[1]) {
			return len(b) == 0
		}
		visit(b[0], b[entryHead:entryHead+int(b[1])])
		b = b[entryHead+int(b[1]):]
	}
}

// indexes judges the key indexes that a record uses, which names gives names.
func (r *contextRecord) indexes(t *tally, f Format, names []string) (ok bool) {
	ok = true
	r.entries(func(index byte, _ []byte) {
		known := int(index) < len(names)
		ok = t.check(f.rule(ruleIndexes), known, "index %d, and a key map of %d names", index, len(names)) && ok
	})
	return ok
}

// beyond reports whether a record uses an index that a key map of n names does not have.
func (r *contextRecord) beyond(n int) bool {
	found := false
	r.entries(func(index byte, _ []byte) { found = found || int(index) >= n })
	return found
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// said is an error in words, nothing if there is none.
func said(err error) string {
	if err == nil {
		return "read"
	}
	return err.Error()
}
