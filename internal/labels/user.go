package labels

import (
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// maxChannels of a Registry have their use of budgets shown apart.
const maxChannels = 2

// user is one user of a Registry, or all those without budgets of their own.
type user struct {
	id     User
	others bool
	totals *totals

	// Guarded by Registry.mu.
	born    uint64 // how many slots were given by when he had his, this one included
	holders int    // accounts of Channels
	idleNs  uint64 // since when there is none

	mu    sync.Mutex
	keys  map[keyName]*key
	bytes int                          // of the keys
	held  *atomic.Int64                // of the keys of all users
	used  [maxChannels][NumBudgets]int // but BudgetKeys

	// escaped counts keys whose values are of kind escapedValues: what was read before has other values.
	escaped atomic.Uint32
}

// keyName is what tells keys apart: attributes of thread contexts are emitted under
// other names than labels.
type keyName struct {
	context bool
	name    string
}

// key is a key of a user. As long as he has his slot it is never freed, nor is its id given to another.
type key struct {
	id         uint32 // guarded by nothing: it never changes, nor does name
	name       string
	kind       valueKind // guarded by user.mu
	conflicted bool      // reported; likewise
}

// valueKind is the type of a key's values.
type valueKind uint8

const (
	textValues    valueKind = iota // valid UTF-8
	binaryValues                   // bytes that are not
	escapedValues                  // text; of bytes, and of text that looks alike, escaped
)

func (k valueKind) String() string { return [...]string{"text", "bytes", "escaped text"}[k] }

// A Conflict is a key of a user whose values are not of one type.
type Conflict struct {
	User
	Others     bool   // the user is one of those beyond Budgets.Users
	Key        string // escaped
	Source     record.ABI
	Before     string // the type of the values so far: text or bytes
	Now        string // that of the one which differs
	Refused    bool   // which is left out; else values are text from now on
	Executable string // of a process that has published it
	Last       bool   // no further ones of this user are reported
}

// MaxConflicts of a user id are reported; further ones are only counted.
const MaxConflicts = 16

// keyBytes is the rough cost of a key beside its bytes, map buckets included.
const keyBytes = 128

func newUser(id User, t *totals, held *atomic.Int64) *user {
	return &user{id: id, totals: t, keys: map[keyName]*key{}, held: held}
}

// forget gives back the memory of the keys of a user without accounts, who is not used any more.
func (u *user) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.held.Add(-int64(u.bytes))
	u.keys, u.bytes = nil, 0
}

// admit gives each of the merged labels its key, and settles the types of their values.
// It returns false, and has done nothing, if there is no room for all the keys.
func (u *user) admit(d *decoder, t *tally, limit int, refuse bool) (conflicts []Conflict, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	fresh := 0
	for i := range d.entries {
		e := &d.entries[i]
		e.name = u.keys[keyName{e.source == record.ABIThreadContext, string(e.key)}]
		if e.name == nil {
			fresh++
		}
	}
	if len(u.keys)+fresh > limit {
		return nil, false
	}
	kept := d.entries[:0]
	for i := range d.entries {
		e := d.entries[i]
		if e.name == nil {
			e.name = u.add(&e)
		}
		if kindOf(e.value) != e.name.kind && e.name.kind != escapedValues {
			if !e.name.conflicted {
				if n := u.totals.report(); n > 0 {
					e.name.conflicted = true
					conflicts = append(conflicts, Conflict{
						User: u.id, Others: u.others, Key: Escape(e.name.name), Source: e.source,
						Before: e.name.kind.String(), Now: kindOf(e.value).String(), Refused: refuse,
						Last: n == MaxConflicts,
					})
				}
			}
			if refuse {
				t.refused++
				d.cut = true
				continue
			}
			e.name.kind = escapedValues
			u.escaped.Add(1)
		}
		if e.escaped = e.name.kind == escapedValues && escapes(e.value); e.escaped {
			t.stringified++
			e.value = []byte(Escape(string(e.value)))
		}
		kept = append(kept, e)
	}
	d.entries = kept
	return conflicts, true
}

func (u *user) add(e *entry) *key {
	k := &key{id: uint32(len(u.keys)), name: string(e.key), kind: kindOf(e.value)}
	u.keys[keyName{e.source == record.ABIThreadContext, k.name}] = k
	cost := keyBytes + len(k.name)
	u.bytes += cost
	u.held.Add(int64(cost))
	return k
}

func kindOf(value []byte) valueKind {
	if utf8.Valid(value) {
		return textValues
	}
	return binaryValues
}

// use notes what a channel took of the budgets in an interval.
func (u *user) use(channel int, used [NumBudgets]int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.used[channel%maxChannels] = used
}

// mostUsed raises what is used of each budget to what the user uses.
func (u *user) mostUsed(most *[NumBudgets]int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for b := range most {
		for channel := range u.used {
			most[b] = max(most[b], u.used[channel][b])
		}
	}
	most[BudgetKeys] = max(most[BudgetKeys], len(u.keys))
}
