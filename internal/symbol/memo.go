package symbol

import "container/list"

const (
	// maxMemo and maxMemoBytes bound the functions of a table whose names are kept ready.
	maxMemo      = 16 << 10
	maxMemoBytes = 4 << 20
	// memoBytes is what such a function takes besides its name.
	memoBytes = 160
)

// memo has names of functions ready, for people, by K. Where there are too many, those that were not asked for lately give
// way: who asks for any number of names drops those that nobody else asks for.
type memo[K comparable] struct {
	names   map[K]*list.Element // of order
	order   list.List           // of memoName[K], the one that was asked for last first
	ofNames int                 // bytes
}

type memoName[K comparable] struct {
	key  K
	name string
}

// find returns a name that is kept ready.
func (m *memo[K]) find(key K) (string, bool) {
	e := m.names[key]
	if e == nil {
		return "", false
	}
	m.order.MoveToFront(e)
	return e.Value.(memoName[K]).name, true
}

// keep keeps a name ready that is not.
func (m *memo[K]) keep(key K, name string) {
	if m.names == nil {
		m.names = map[K]*list.Element{}
	}
	n := memoBytes + len(name)
	for len(m.names) > 0 && (len(m.names) == maxMemo || m.ofNames+n > maxMemoBytes) {
		last := m.order.Remove(m.order.Back()).(memoName[K])
		delete(m.names, last.key)
		m.ofNames -= memoBytes + len(last.name)
	}
	m.names[key] = m.order.PushFront(memoName[K]{key, name})
	m.ofNames += n
}

// bytes returns the memory that it takes, roughly.
func (m *memo[K]) bytes() int { return m.ofNames }
