//go:build linux

package executable

import (
	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Of the record.MaxFileRows files whose rows are used in processes that were not looked at yet,
// a user's processes get so many places, with files that anybody may own and copy. Root gets half:
// hosts and containers run most of their programs as root.
const (
	maxRootPlaces = record.MaxFileRows / 2
	maxUserPlaces = record.MaxFileRows / 8
)

func maxPlacesOf(uid uint32) int {
	if uid == 0 {
		return maxRootPlaces
	}
	return maxUserPlaces
}

// place has the rows of a file used wherever a process maps it, for a user whose processes do.
// Where he has all of his places, they are used by processes that were looked at only, until
// another user's process maps the file.
func (r *Rows) place(f *File, rows *fileRows, uid uint32) {
	isVDSO := f.vdso != nil // all processes map it, so that it is nobody's
	if rows.kernel == (record.FileKey{}) && !isVDSO {
		return
	}
	if !isVDSO && !r.takePlace(rows, uid) {
		r.counts.unplaced.Add(1)
		return
	}
	err := r.opts.Tables.SetFileRows(rows.kernel, rows.ID, f.facts.Layout.texts(rows.Base))
	if err == nil {
		return
	}
	r.counts.unplaced.Add(1)
	r.opts.Logger.Debug("A file's rows are used by processes that were looked at only.", zap.String("file", f.path), zap.Error(err))
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.tables[rows.ID]; s != nil {
		r.leavePlace(s, rows.kernel)
	}
}

// takePlace takes one of a user's places for a file, unless it has one.
func (r *Rows) takePlace(rows *fileRows, uid uint32) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.tables[rows.ID]
	if s == nil {
		return false
	}
	if _, ok := s.places[rows.kernel]; ok {
		return true
	}
	if r.places[uid] >= maxPlacesOf(uid) {
		return false
	}
	r.places[uid]++
	s.places[rows.kernel] = uid
	return true
}

// leavePlace gives the place of a file back. The caller holds r.mu.
func (r *Rows) leavePlace(s *sharedRows, file record.FileKey) {
	uid, ok := s.places[file]
	if !ok {
		return
	}
	delete(s.places, file)
	r.places[uid]--
	if r.places[uid] == 0 {
		delete(r.places, uid)
	}
}

// seenBy notes whose process maps a file that has rows. Without a place, it may get one of his.
// The caller holds r.mu.
func (r *Rows) seenBy(f *File, uid uint32) {
	s := &f.rows
	if _, ok := s.users[uid]; ok {
		return
	}
	s.users[uid] = struct{}{}
	if t := r.tables[s.ID]; t != nil && s.kernel != (record.FileKey{}) {
		if _, ok := t.places[s.kernel]; !ok {
			r.unplaced = append(r.unplaced, unplacedRows{f, uid})
			r.Wake()
		}
	}
}

// unplacedRows are those of a file for which a user may have a place.
type unplacedRows struct {
	file *File
	uid  uint32
}

// placeSeen gives places to the files that other users' processes map by now.
func (r *Rows) placeSeen() {
	r.mu.Lock()
	seen := r.unplaced
	r.unplaced = nil
	rows := make([]fileRows, len(seen))
	for i, of := range seen {
		rows[i] = of.file.rows
	}
	r.mu.Unlock()
	for i, of := range seen {
		if rows[i].state == rowsReady {
			r.place(of.file, &rows[i], of.uid)
		}
	}
}
