//go:build linux

package executable

import (
	"crypto/sha256"
	"io"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// sharedRows are rows that files have, one or several. Guarded by Rows.mu.
type sharedRows struct {
	files, bytes int
	places       map[record.FileKey]uint32 // in which they are used, and whose these are
}

// hold notes that a file has rows.
func (r *Rows) hold(id record.TableID, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.tables[id]; s != nil {
		s.files++
		return
	}
	r.tables[id] = &sharedRows{1, bytes, map[record.FileKey]uint32{}}
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

// maxHashedBytes is the size up to which a file is compared with others as a whole. Larger
// ones have rows of their own.
const maxHashedBytes = 256 << 20

// shareWith gives a file the rows of another one with the same contents, as images have
// that were unpacked twice. Build ids, lengths, heads and tails only say where to look: all
// bytes are compared, by their hash, of files that did not change since their rows were made.
func (r *Rows) shareWith(f *File, file *Contents, size int64) (rows fileRows, with *File) {
	twins := r.twins(f)
	if len(twins) == 0 || size > maxHashedBytes {
		return fileRows{}, nil
	}
	sum, err := f.sum(file, size)
	if err != nil {
		return fileRows{}, nil
	}
	for twin, rows := range twins {
		if rows.kernel == (record.FileKey{}) || !twin.holds(sum, rows.kernel) {
			continue
		}
		if shared, ok := r.share(twin, rows.ID); ok {
			return shared, twin
		}
	}
	return fileRows{}, nil
}

// twins are the files with rows that look like another one.
func (r *Rows) twins(f *File) map[*File]fileRows {
	if f.facts.BuildIDGNU == "" && f.facts.BuildIDGo == "" || f.facts.HTLHash == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	twins := map[*File]fileRows{}
	for g := range r.ready {
		if g != f && g.key.Size == f.key.Size && g.facts.HTLHash == f.facts.HTLHash &&
			g.facts.BuildIDGNU == f.facts.BuildIDGNU && g.facts.BuildIDGo == f.facts.BuildIDGo {
			twins[g] = g.rows
		}
	}
	return twins
}

// share has one more file hold the rows of another one, if that still has them.
func (r *Rows) share(f *File, id record.TableID) (fileRows, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.tables[id]
	if s == nil || f.rows.state != rowsReady || f.rows.ID != id {
		return fileRows{}, false
	}
	s.files++
	return fileRows{FileRows: f.rows.FileRows}, true
}

// holds reports whether a file still has the contents that its rows were made of, and
// whether these have a hash.
func (f *File) holds(sum [sha256.Size]byte, kernel record.FileKey) bool {
	file, size, err := f.Open()
	if err != nil {
		return false
	}
	defer file.Close()
	own, err := f.sum(file, size)
	return err == nil && own == sum && f.named(file) == kernel
}

// sum returns the hash of all bytes of a file. It is computed once: a file that changes is
// another one. So as many copies as somebody makes are read once each.
func (f *File) sum(file io.ReaderAt, size int64) (sum [sha256.Size]byte, err error) {
	if known := f.hash.Load(); known != nil {
		return *known, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(file, 0, size)); err != nil {
		return sum, err
	}
	sum = [sha256.Size]byte(h.Sum(nil))
	f.hash.Store(&sum)
	return sum, nil
}
