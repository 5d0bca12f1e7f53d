//go:build linux

package process

// Hold keeps what is known of a process for samples of it that are on their way, until [Table.Release],
// however long that takes: when the process has left the table, it takes memory, but no place there.
func (t *Table) Hold(p *Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.holds++
}

// Release takes back one Hold of each process.
func (t *Table) Release(processes map[uint64]*Process) {
	if len(processes) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range processes {
		p.holds--
		if p.holds == 0 && !t.has(p) {
			t.forgetAll(p)
		}
	}
}

// has reports whether a process has a place in the table, which is locked.
func (t *Table) has(p *Process) bool { return t.byID[p.id] == p }

// forgetAll lets go of what is known of a process that has left the table. The table is locked.
func (t *Table) forgetAll(p *Process) {
	if t.byHandle[p.handle] != p {
		return // it was held too late, or had to make room
	}
	delete(t.byHandle, p.handle)
	t.forgetFunctions(p)
	p.current.info.useFiles(-1)
	p.current, p.previous = read{}, read{}
	t.hold(p, 0)
}
