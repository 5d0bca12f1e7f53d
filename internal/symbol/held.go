package symbol

import (
	"container/list"
	"time"
)

const (
	// userShare of what a cache may hold is what a user has before his entries are the first to go, and what one
	// file may take: a user's file that was just read leaves what others use.
	userShare = 2
	// A cache of at least largeCache gives up 1/slackShare more than it has to: to find what goes takes a look
	// at many entries.
	largeCache = 1 << 20
	slackShare = 64
)

// holding is what an entry of a cache takes, and for whom. Guarded by the cache's mutex.
type holding struct {
	uid   uint32 // for whom it was read first
	bytes int
	used  time.Time // last
}

func (h *holding) account() *holding { return h }

// holder is an entry of a cache.
type holder interface {
	account() *holding
	// beingRead reports whether the entry has to stay: what is being read may never answer, and would be read
	// again if it was forgotten.
	beingRead() bool
	// outside is how many bytes of it lie outside of Go's heap.
	outside() int
	// trim drops what can be had again without reading anything, and returns how many bytes that took.
	trim() int
}

// held is what a cache holds. Guarded by the cache's mutex.
type held struct {
	order *list.List // of holder, the most recently used first
	bytes int
	users map[uint32]int // bytes
	freed int            // bytes outside of Go's heap of what was dropped, which a collection gives back
}

func newHeld() held { return held{order: list.New(), users: map[uint32]int{}} }

// add counts more bytes for a user.
func (h *held) add(uid uint32, n int) {
	h.bytes += n
	if h.users[uid] += n; h.users[uid] == 0 {
		delete(h.users, uid)
	}
}

// use notes that an entry is used.
func (h *held) use(element *list.Element, now time.Time) {
	h.order.MoveToFront(element)
	element.Value.(holder).account().used = now
}

// shrinkTo drops entries until all take at most so many bytes, those first that were not used for the longest
// time: of all users what was not used since then, or who has little would keep it for ever; after that what users
// have who hold more than their share, then others. So who reads more than there is room for has his own read
// again, and nobody else's. The entry used last stays.
func (h *held) shrinkTo(bytes int, since time.Time, drop func(*list.Element)) {
	if h.bytes <= bytes {
		return
	}
	share := bytes / userShare
	if bytes >= largeCache {
		bytes -= bytes / slackShare
	}
	h.dropTo(bytes, drop, func(e *holding) bool { return !e.used.After(since) })
	h.dropTo(bytes, drop, func(e *holding) bool { return h.users[e.uid] > share })
	h.trim(bytes, share)
	h.dropTo(bytes, drop, func(*holding) bool { return true })
}

// trim has the entry used last, which stays, take less if its user holds more than his share.
func (h *held) trim(bytes, share int) {
	front := h.order.Front()
	if h.bytes <= bytes || front == nil {
		return
	}
	e := front.Value.(holder)
	if of := e.account(); h.users[of.uid] > share {
		n := e.trim()
		of.bytes -= n
		h.add(of.uid, -n)
	}
}

// dropTo drops entries that may go until all take at most so many bytes.
func (h *held) dropTo(bytes int, drop func(*list.Element), goes func(*holding) bool) {
	for element := h.order.Back(); h.bytes > bytes && element != nil && element != h.order.Front(); {
		next := element.Prev()
		if e := element.Value.(holder); !e.beingRead() && goes(e.account()) {
			h.freed += e.outside()
			drop(element)
		}
		element = next
	}
}
