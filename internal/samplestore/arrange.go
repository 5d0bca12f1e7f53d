package samplestore

// arrange gives the places of the trie the numbers in which a walk along it meets them: so all
// that is below a place is one stretch of numbers. What others may be looking at stays as it is.
func (c *columns) arrange() {
	n := len(c.trie)
	ends := make([]uint32, n) // first the number of places in the subtree, by old number
	for i := n - 1; i >= 0; i-- {
		if ends[i]++; i > 0 {
			ends[c.trie[i].parent] += ends[i]
		}
	}
	place, next := make([]uint32, n), make([]uint32, n) // by old number: the new one, and that of the next child
	trie := make([]trieNode, n)
	for i, old := range c.trie {
		parent := place[old.parent]
		if i > 0 {
			place[i] = next[old.parent]
			next[old.parent] += ends[i]
		}
		next[i] = place[i] + 1
		trie[place[i]] = trieNode{parent, old.frame}
	}
	for i, at := range place {
		next[at] = at + ends[i]
	}
	rows := make([]row, len(c.rows))
	copy(rows, c.rows)
	for i := range rows {
		rows[i].at = place[rows[i].at]
	}
	c.trie, c.ends, c.rows = trie, next, rows
}
