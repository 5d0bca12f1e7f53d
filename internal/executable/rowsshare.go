//go:build linux

package executable

import (
	"crypto/sha256"
	"encoding/binary"
	"unsafe"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// sharedRows are rows that files have, one or several. Guarded by Rows.mu.
type sharedRows struct {
	files, bytes int
	rows         [sha256.Size]byte
	places       map[record.FileKey]uint32 // in which they are used, and whose these are
}

// hold notes that a file has rows which no other has.
func (r *Rows) hold(id record.TableID, bytes int, rows [sha256.Size]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tables[id] = &sharedRows{1, bytes, rows, map[record.FileKey]uint32{}}
	r.byRows[rows] = id
	r.bytes += bytes
}

// release notes that a file does not have them any more. last: nor has any other; placed: it had a
// place, which no other File of the same file needs. The key of none, which the vDSO has too, leaves no
// place before the last.
func (r *Rows) release(id record.TableID, file record.FileKey) (last, placed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.tables[id]
	if s == nil {
		return false, false
	}
	if s.files--; s.files > 0 {
		return false, file != (record.FileKey{}) && !r.isReady(id, file) && r.leavePlace(s, file)
	}
	r.bytes -= s.bytes
	for file := range s.places {
		r.leavePlace(s, file)
	}
	delete(r.tables, id)
	if r.byRows[s.rows] == id {
		delete(r.byRows, s.rows)
	}
	return true, false
}

// isReady reports whether a file has rows. The caller holds r.mu.
func (r *Rows) isReady(id record.TableID, file record.FileKey) bool {
	for f := range r.ready {
		if f.rows.ID == id && f.rows.kernel == file {
			return true
		}
	}
	return false
}

// share has one more file hold a table with the same rows, if there is one, as copies of a file
// have: images that were unpacked twice. The rows themselves are compared, by their hash: what a
// file was when its rows were made, nobody knows later, since who has it mapped can write to it
// without a trace.
func (r *Rows) share(rows [sha256.Size]byte) (id record.TableID, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id, ok = r.byRows[rows]; ok {
		r.tables[id].files++
	}
	return id, ok
}

// rowsOf returns the hash of all that a table says.
func rowsOf(t *record.UnwindTable) [sha256.Size]byte {
	h := sha256.New()
	order := binary.NativeEndian
	head := order.AppendUint64(nil, t.Base)
	for _, n := range []int{len(t.Rules), len(t.Index), len(t.Rows)} {
		head = order.AppendUint64(head, uint64(n))
	}
	h.Write(head)
	var b [16]byte
	for _, rule := range t.Rules {
		b[0], b[1], b[2], b[3] = byte(rule.CFA), rule.Arg, byte(rule.RA), byte(rule.FP)
		order.PutUint32(b[4:], uint32(rule.CFAOffset))
		order.PutUint32(b[8:], uint32(rule.RAOffset))
		order.PutUint32(b[12:], uint32(rule.FPOffset))
		h.Write(b[:])
	}
	h.Write(words(t.Index))
	h.Write(words(t.Rows))
	return [sha256.Size]byte(h.Sum(nil))
}

// words are the bytes of numbers as they are in memory.
func words[T ~uint32](of []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(of))), 4*len(of))
}
