package offcpu

import "container/heap"

// userBytes is the memory of a user beside the entries.
const userBytes = 128

// maxUnused is how many users without entries are kept to be used again.
const maxUnused = 64

// A user has entries in a table.
type user struct {
	uid   uint32
	at    int // in users.order
	bytes int // of the entries
	// From the one that left first to the latest.
	first, last *entry
}

// users are those who have entries.
type users struct {
	byUID  map[uint32]*user
	order  mostFirst
	unused []*user
}

// bytes of all users beside their entries.
func (u *users) bytes() int { return len(u.order) * userBytes }

// link adds an entry of a user, the latest.
func (u *users) link(uid uint32, e *entry) {
	of := u.byUID[uid]
	if of == nil {
		of = u.begin(uid)
	}
	e.user, e.prev, e.next = of, of.last, nil
	if of.last != nil {
		of.last.next = e
	} else {
		of.first = e
	}
	of.last = e
	of.bytes += e.size()
	heap.Fix(&u.order, of.at)
}

// unlink takes an entry out.
func (u *users) unlink(e *entry) {
	of := e.user
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		of.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		of.last = e.prev
	}
	of.bytes -= e.size()
	if of.first == nil {
		u.end(of)
		return
	}
	heap.Fix(&u.order, of.at)
}

func (u *users) begin(uid uint32) *user {
	var of *user
	if n := len(u.unused); n > 0 {
		of, u.unused = u.unused[n-1], u.unused[:n-1]
	} else {
		of = &user{}
	}
	of.uid = uid
	u.byUID[uid] = of
	heap.Push(&u.order, of)
	return of
}

func (u *users) end(of *user) {
	heap.Remove(&u.order, of.at)
	delete(u.byUID, of.uid)
	if len(u.unused) < maxUnused {
		u.unused = append(u.unused, of)
	}
}

// mostFirst is a heap.Interface: the one who has most bytes is the first.
type mostFirst []*user

func (m mostFirst) Len() int           { return len(m) }
func (m mostFirst) Less(i, j int) bool { return m[i].bytes > m[j].bytes }

func (m mostFirst) Swap(i, j int) {
	m[i], m[j] = m[j], m[i]
	m[i].at, m[j].at = i, j
}

// Push implements heap.Interface.
func (m *mostFirst) Push(of any) {
	of.(*user).at = len(*m)
	*m = append(*m, of.(*user))
}

// Pop implements heap.Interface.
func (m *mostFirst) Pop() any {
	end := len(*m) - 1
	of := (*m)[end]
	(*m)[end] = nil
	*m = (*m)[:end]
	return of
}
