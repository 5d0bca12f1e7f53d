package symbol

const (
	// maxMemo and maxMemoBytes bound the functions of a table whose names are kept ready.
	maxMemo      = 16 << 10
	maxMemoBytes = 4 << 20
	// memoBytes is what such a function takes besides its name.
	memoBytes = 80
)

// memo has names of functions ready, for people, by K: those that were asked for last. Who asks for any number of names
// drops those that nobody else asks for.
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
	if m.recent.names == nil || len(m.recent.names) == maxMemo/2 || m.recent.bytes+n > maxMemoBytes/2 {
		m.older, m.recent = m.recent, generation[K]{names: map[K]string{}}
	}
	m.recent.names[key] = name
	m.recent.bytes += n
}

// bytes returns the memory that it takes, roughly.
func (m *memo[K]) bytes() int { return m.recent.bytes + m.older.bytes }
