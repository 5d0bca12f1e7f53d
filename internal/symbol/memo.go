package symbol

const (
	// maxMemo and maxMemoBytes bound the functions of a table whose names are kept ready.
	maxMemo      = 16 << 10
	maxMemoBytes = 4 << 20
	// memoBytes is what such a function takes besides its name.
	memoBytes = 80
)

// memo has names of functions ready, for people, by K.
type memo[K comparable] struct {
	names map[K]string
	bytes int
}

// keep keeps a name ready, and returns how many bytes more all take.
func (m *memo[K]) keep(key K, name string) (more int) {
	before := m.bytes
	n := memoBytes + len(name)
	if m.names == nil || len(m.names) == maxMemo || m.bytes+n > maxMemoBytes {
		m.names, m.bytes = map[K]string{}, 0
	}
	m.names[key] = name
	m.bytes += n
	return m.bytes - before
}
