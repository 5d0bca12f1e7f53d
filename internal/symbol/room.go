package symbol

import "sync"

// roomLimits bound what is held in memory of files while they are read, in bytes and roughly. A
// file that never answers keeps what it has taken. A user has a quarter of all. Where files are read in
// pieces, each container of his has half of that; else the largest file needs it.
type roomLimits struct {
	all, user, place int
	// free bytes of each file are not counted: small ones are read whatever others do.
	free int
}

// mapLimits are for what was read of perf maps and not merged yet.
func mapLimits() roomLimits {
	return roomLimits{all: 32 << 20, user: 8 << 20, place: 4 << 20, free: 64 << 10}
}

// packedLimits are for .gnu_debugdata that was not unpacked yet.
func packedLimits() roomLimits {
	return roomLimits{all: 4 * maxPackedBytes, user: maxPackedBytes, place: maxPackedBytes, free: 256 << 10}
}

// tableLimits are for tables of files that were not read to their end.
func tableLimits() roomLimits {
	return roomLimits{all: 128 << 20, user: defaultMaxTableBytes, place: defaultMaxTableBytes, free: 512 << 10}
}

// roomStep is in what steps room is taken.
const roomStep = 1 << 20

// room is memory for what is read of files. What is then made of that takes a multiple of it,
// so that takes place one after the other: of each user, and of each container of it, one
// waits, so that one with many delays others by one.
type room struct {
	limits roomLimits
	turn   sync.Mutex

	mu     sync.Mutex
	taken  int
	users  map[uint32]*roomShare
	places map[place]*roomShare
}

// roomShare is what a user has, or a container of it. Guarded by room.mu, but for turn.
type roomShare struct {
	turn  sync.Mutex // that of the container is locked before that of the user, and the room's last
	taken int
	files int
}

// fileRoom is what a file has that is being read.
type fileRoom struct {
	room        *room
	of          place
	user, place *roomShare
	taken       int
}

func newRoom(limits roomLimits) *room {
	return &room{limits: limits, users: map[uint32]*roomShare{}, places: map[place]*roomShare{}}
}

// begin makes room for a file; end is to be called when what was read of it is not held any more.
func (r *room) begin(of Owner) *fileRoom {
	at := of.place()
	r.mu.Lock()
	defer r.mu.Unlock()
	return &fileRoom{room: r, of: at, user: join(r.users, at.uid), place: join(r.places, at)}
}

func join[K comparable](shares map[K]*roomShare, key K) *roomShare {
	s := shares[key]
	if s == nil {
		s = &roomShare{}
		shares[key] = s
	}
	s.files++
	return s
}

func (f *fileRoom) end() {
	f.room.mu.Lock()
	defer f.room.mu.Unlock()
	f.take(-f.taken)
	leave(f.room.users, f.of.uid)
	leave(f.room.places, f.of)
}

func leave[K comparable](shares map[K]*roomShare, key K) {
	if shares[key].files--; shares[key].files == 0 {
		delete(shares, key)
	}
}

// has reports whether there is room for so many bytes of the file.
func (f *fileRoom) has(bytes int) bool {
	r := f.room
	more := bytes - f.taken - r.limits.free
	if more <= 0 {
		return true
	}
	more = (more + roomStep - 1) / roomStep * roomStep
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken+more > r.limits.all || f.user.taken+more > r.limits.user || f.place.taken+more > r.limits.place {
		return false
	}
	f.take(more)
	return true
}

func (f *fileRoom) take(bytes int) {
	f.room.taken += bytes
	f.user.taken += bytes
	f.place.taken += bytes
	f.taken += bytes
}

// alone calls do while nothing else is made of files. It must not read any: they may never
// answer.
func (f *fileRoom) alone(do func()) {
	f.place.turn.Lock()
	defer f.place.turn.Unlock()
	f.user.turn.Lock()
	defer f.user.turn.Unlock()
	f.room.turn.Lock()
	defer f.room.turn.Unlock()
	do()
}
