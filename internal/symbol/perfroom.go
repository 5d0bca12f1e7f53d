package symbol

import "sync"

const (
	// maxNewMapBytes and maxUserNewMapBytes bound what was read of perf maps and not merged yet,
	// of all and of those of one user, in steps of newMapStep. A file that never answers keeps
	// what it has taken.
	maxNewMapBytes     = 32 << 20
	maxUserNewMapBytes = 16 << 20
	newMapStep         = 1 << 20
	// freeMapBytes of each map are not counted: a map that only grows needs no more.
	freeMapBytes = 64 << 10
)

// mapRoom bounds the memory for reading perf maps. They are merged, which takes a multiple of
// what they are, one after the other: of each user one waits, so that a user with many
// delays others by one.
type mapRoom struct {
	merging sync.Mutex

	mu    sync.Mutex
	taken int
	users map[uint32]*userRoom
}

// userRoom is that of a user's maps. Guarded by mapRoom.mu, but for merging.
type userRoom struct {
	merging sync.Mutex // locked before mapRoom.merging
	taken   int
	maps    int // that are being read
}

// newMap is the room of a map that is being read.
type newMap struct {
	room  *mapRoom
	uid   uint32
	user  *userRoom
	taken int
}

// begin makes room for a map of a user; end is to be called when it was read.
func (r *mapRoom) begin(uid uint32) *newMap {
	r.mu.Lock()
	defer r.mu.Unlock()
	user := r.users[uid]
	if user == nil {
		user = &userRoom{}
		if r.users == nil {
			r.users = map[uint32]*userRoom{}
		}
		r.users[uid] = user
	}
	user.maps++
	return &newMap{room: r, uid: uid, user: user}
}

func (n *newMap) end() {
	r := n.room
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken -= n.taken
	n.user.taken -= n.taken
	if n.user.maps--; n.user.maps == 0 {
		delete(r.users, n.uid)
	}
}

// has reports whether there is room for so many bytes of the map.
func (n *newMap) has(bytes int) bool {
	if bytes <= n.taken+freeMapBytes {
		return true
	}
	r := n.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken+newMapStep > maxNewMapBytes || n.user.taken+newMapStep > maxUserNewMapBytes {
		return false
	}
	r.taken += newMapStep
	n.user.taken += newMapStep
	n.taken += newMapStep
	return true
}

// alone calls merge while no other map is merged. It must not read files: they may never answer.
func (n *newMap) alone(merge func()) {
	n.user.merging.Lock()
	defer n.user.merging.Unlock()
	n.room.merging.Lock()
	defer n.room.merging.Unlock()
	merge()
}
