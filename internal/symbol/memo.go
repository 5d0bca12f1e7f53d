package symbol

const (
	// maxMemo and maxMemoBytes bound the functions of a table whose names are kept ready.
	maxMemo      = 16 << 10
	maxMemoBytes = 4 << 20
	// memoBytes is what such a function takes besides its name.
	memoBytes = 80
)

// memo has names of functions ready, for people, by K: all as long as there is room, then those that were asked for last.
// Who asks for any number of names drops those that nobody else asks for.
type memo[K comparable] struct {
	recent, older generation[K]
}

// generation is the names that were asked for in one time.
type generation[K comparable] struct {
	names map[K]string
	bytes int
}

// find returns a name that is kept ready.
func (m *memo[K]) find(key K) (string, bool) {
	if name, ok := m.recent.names[key]; ok {
		return name, true
	}
	name, ok := m.older.names[key]
	if ok {
		delete(m.older.names, key)
		m.older.bytes -= memoBytes + len(name)
		m.keep(key, name)
	}
	return name, ok
}

// keep keeps a name ready that is not.
func (m *memo[K]) keep(key K, name string) {
	n := memoBytes + len(name)
	for m.kept() > 0 && (m.kept() >= maxMemo || m.bytes()+n > maxMemoBytes) {
		if len(m.older.names) == 0 || len(m.recent.names) >= maxMemo/2 || m.recent.bytes >= maxMemoBytes/2 {
			m.older, m.recent = m.recent, generation[K]{}
		} else {
			m.older.dropOne()
		}
	}
	if m.recent.names == nil {
		m.recent.names = map[K]string{}
	}
	m.recent.names[key] = name
	m.recent.bytes += n
}

// dropOne drops one of some names.
func (g *generation[K]) dropOne() {
	for key, name := range g.names {
		delete(g.names, key)
		g.bytes -= memoBytes + len(name)
		return
	}
}

// kept is the number of names.
func (m *memo[K]) kept() int { return len(m.recent.names) + len(m.older.names) }

// bytes returns the memory that it takes, roughly.
func (m *memo[K]) bytes() int { return m.recent.bytes + m.older.bytes }
