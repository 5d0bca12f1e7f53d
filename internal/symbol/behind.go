package symbol

import "slices"

// A file is read through the process of whoever asks first, who may have it hang, or have other files of his read
// before it. When that takes longer than is waited for one file, it is read through another user's process beside,
// and then there are names for all; the first read is left behind. Of one file so many are, at most, each of another
// user.
const maxBehind = 2

// late reports whether a file is to be read for another user beside the one for whom it is being read. Cache.mu is
// held.
func (c *Cache[K]) late(e *cached[K], uid uint32) bool {
	if e.loading == nil || e.uid == uid || c.opts.Now().Before(e.deadline) {
		return false
	}
	return len(e.behind) < maxBehind && !e.isBehind(uid)
}

// isBehind reports whether a read was left behind that is a user's. Cache.mu is held.
func (e *cached[K]) isBehind(uid uint32) bool {
	return slices.ContainsFunc(e.behind, func(b *cached[K]) bool { return b.uid == uid })
}

// replace has an entry take the place of the last one of its file. Cache.mu is held.
func (e *cached[K]) replace(last *cached[K]) {
	e.refusals, e.behind = last.refusals, last.behind
	if last.known != nil {
		e.before = last
	}
	if last.loading != nil {
		e.before, e.behind = last.before, append(e.behind, last)
	}
	last.behind = nil
}

// endBehind ends a read that was left behind, and reports whether it was. What it has found holds until the read that
// has taken its place ends. Cache.mu is held.
func (c *Cache[K]) endBehind(e *cached[K], known *functions) bool {
	element := c.byKey[e.key]
	if element == nil || element.Value.(*cached[K]) == e {
		return false
	}
	now := element.Value.(*cached[K])
	now.behind = slices.DeleteFunc(now.behind, func(b *cached[K]) bool { return b == e })
	e.known, e.before = known, nil
	if known != nil && now.loading != nil && now.before == nil {
		now.before = e
		c.grow(now, now.size()-now.bytes)
	}
	close(e.done)
	c.shrink()
	return true
}
