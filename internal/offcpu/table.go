package offcpu

// Table holds the records of threads that are off the CPU. It is for one goroutine.
type Table struct {
	maxBytes int
	bytes    int // of entries, also free ones
	entries  map[uint32]*entry
	users    users
	free     *entry // to be used again
	counts   Counts
}

// Counts are of records that were given up since NewTable.
type Counts struct {
	// Evicted: there was no room.
	Evicted uint64
	// ReturnLost: the thread has left again, so it must have returned.
	ReturnLost uint64
}

type entry struct {
	thread     uint32
	leftNs     uint64
	record     []byte
	user       *user
	prev, next *entry // of the user
}

// entryBytes is the memory of an entry besides its record, with its place in the map.
const entryBytes = 128

// maxSpare is how many times its size a record may take.
const maxSpare = 2

// freeRecordBytes is the largest memory of a record that is kept for the next one.
const freeRecordBytes = 4096

// NewTable returns an empty table that takes about maxBytes at most.
func NewTable(maxBytes int) *Table {
	return &Table{maxBytes: maxBytes, entries: map[uint32]*entry{}, users: users{byUID: map[uint32]*user{}}}
}

// Leave keeps a copy of the record of a user's thread that leaves the CPU. Threads are told
// apart by their number: an older one with the same number has ended meanwhile.
func (t *Table) Leave(uid, thread uint32, leftNs uint64, record []byte) {
	if old := t.entries[thread]; old != nil {
		t.remove(old)
		t.counts.ReturnLost++
	}
	e := t.take()
	if cap(e.record) > maxSpare*len(record) {
		e.record = nil // it would count as this one's
	}
	*e = entry{thread: thread, leftNs: leftNs, record: append(e.record[:0], record...)}
	t.entries[thread] = e
	t.users.link(uid, e)
	t.bytes += e.size()
	t.makeRoom()
}

// take returns an entry with memory to be used again, if there is one.
func (t *Table) take() *entry {
	e := t.free
	if e == nil {
		return &entry{}
	}
	t.free = e.next
	t.bytes -= e.size()
	return e
}

// makeRoom gives up what is free, then what left first of the user who has most: who has
// little does not pay for another who has taken the room.
func (t *Table) makeRoom() {
	for t.Bytes() > t.maxBytes && t.free != nil {
		t.forgetFree()
	}
	for t.Bytes() > t.maxBytes {
		t.drop(t.users.order[0].first)
		t.counts.Evicted++
	}
}

// ForgetFree gives up what is kept to be used again.
func (t *Table) ForgetFree() {
	for t.free != nil {
		t.forgetFree()
	}
}

func (t *Table) forgetFree() {
	t.bytes -= t.free.size()
	t.free = t.free.next
}

// Return takes out the record of the thread that left at that time, valid
// until the next call, or false when it is not there any more.
func (t *Table) Return(thread uint32, leftNs uint64) ([]byte, bool) {
	e := t.entries[thread]
	if e == nil || e.leftNs != leftNs {
		return nil, false
	}
	t.remove(e)
	return e.record, true
}

// Len returns how many threads are off the CPU.
func (t *Table) Len() int { return len(t.entries) }

// Bytes estimates the memory of the table.
func (t *Table) Bytes() int { return t.bytes + t.users.bytes() }

// UserBytes estimates the memory of a user's records.
func (t *Table) UserBytes(uid uint32) int {
	if of := t.users.byUID[uid]; of != nil {
		return of.bytes
	}
	return 0
}

// Counts returns how many records were given up.
func (t *Table) Counts() Counts { return t.counts }

func (e *entry) size() int { return entryBytes + cap(e.record) }

// remove takes e out and keeps its memory for the next one.
func (t *Table) remove(e *entry) {
	t.unlink(e)
	if cap(e.record) > freeRecordBytes {
		t.bytes -= e.size()
		return
	}
	e.next = t.free
	t.free = e
}

func (t *Table) drop(e *entry) {
	t.unlink(e)
	t.bytes -= e.size()
}

func (t *Table) unlink(e *entry) {
	t.users.unlink(e)
	delete(t.entries, e.thread)
}
