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
	// maxSeen users are kept of those whose processes map a file that has rows: more than can have
	// taken all of their places.
	maxSeen = 4 * record.MaxFileRows / maxUserPlaces
)

func maxPlacesOf(uid uint32) int {
	if uid == 0 {
		return maxRootPlaces
	}
	return maxUserPlaces
}

// place has the rows of a file used wherever a process maps it, for one of the users whose
// processes do. Where each of them has all of his places, it returns false: they are used by
// processes that were looked at only, until one maps the file whose user has a place left.
func (r *Rows) place(f *File) bool {
	r.placing.Lock()
	defer r.placing.Unlock()
	r.mu.Lock()
	wants, rows := r.wantsPlace(f), f.rows
	takes := wants && r.takePlace(f)
	r.mu.Unlock()
	if !takes {
		return !wants
	}
	err := r.opts.Tables.SetFileRows(rows.kernel, rows.ID, f.facts.Layout.texts(rows.Base))
	if err == nil {
		return true
	}
	r.opts.Logger.Debug("A file's rows are used by processes that were looked at only.", zap.String("file", f.path), zap.Error(err))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leavePlace(r.tables[rows.ID], rows.kernel)
	return false
}

// wantsPlace reports whether a file has rows and no place. The caller holds r.mu.
func (r *Rows) wantsPlace(f *File) bool {
	s := r.tables[f.rows.ID]
	if f.rows.state != rowsReady || s == nil || f.rows.kernel == (record.FileKey{}) && f.vdso == nil {
		return false
	}
	_, placed := s.places[f.rows.kernel]
	return !placed
}

// takePlace takes a place for a file that wants one: of the user who has most left, among those
// whose processes map the file. The caller holds r.mu.
func (r *Rows) takePlace(f *File) bool {
	of, most := uint32(0), 0
	for uid := range f.rows.users {
		if left := maxPlacesOf(uid) - r.places[uid]; left > most {
			of, most = uid, left
		}
	}
	if most == 0 && f.vdso == nil { // the vDSO is everybody's
		return false
	}
	r.places[of]++
	r.tables[f.rows.ID].places[f.rows.kernel] = of
	return true
}

// leavePlace gives the place of a file back, if it has one. The caller holds r.mu.
func (r *Rows) leavePlace(s *sharedRows, file record.FileKey) bool {
	uid, ok := s.places[file]
	if !ok {
		return false
	}
	delete(s.places, file)
	r.places[uid]--
	if r.places[uid] == 0 {
		delete(r.places, uid)
	}
	return true
}

// seenBy notes whose process maps a file that has rows. Without a place, it may get one of his.
// The caller holds r.mu.
func (r *Rows) seenBy(f *File, uid uint32) {
	if len(f.rows.users) < maxSeen {
		f.rows.users[uid] = struct{}{}
	}
	if r.wantsPlace(f) && r.places[uid] < maxPlacesOf(uid) {
		r.unplaced[f] = struct{}{}
		r.Wake()
	}
}

// seen returns as many of the users who have waited for a file as are kept when it has rows.
func seen(users map[uint32]struct{}) map[uint32]struct{} {
	if len(users) <= maxSeen {
		return users
	}
	kept := make(map[uint32]struct{}, maxSeen) // a map from which most is deleted stays as large
	for uid := range users {
		if kept[uid] = struct{}{}; len(kept) == maxSeen {
			break
		}
	}
	return kept
}

// placeSeen gives places to the files that were mapped without one.
func (r *Rows) placeSeen() {
	r.mu.Lock()
	seen := r.unplaced
	r.unplaced = map[*File]struct{}{}
	r.mu.Unlock()
	for f := range seen {
		r.place(f)
	}
}
