package labels

import (
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
)

// User is whose budgets a label counts in.
type User struct {
	UID       uint32 // in the init user namespace
	Container string // id; "" where users are not told apart by container
}

// Options of a Registry.
type Options struct {
	Promotion Promotion
	Rules     []Rule
	// Salt of the action Hash; empty: a random one, so that hashes hold for the life of
	// the Registry.
	Salt    []byte
	Refuse  bool // leaves out labels whose type is another than the key's, instead of making them text
	Budgets Budgets
	// OnConflict is told once of each user's key whose values are not of one type, up to
	// MaxConflicts of a user id. It is called by the goroutine of a Channel; nil: nobody is told.
	OnConflict func(Conflict)
}

// A Registry knows the keys of each user's labels, the rules for labels, and how much of
// their budgets users take. It lives as long as a receiver runs. Its methods may be
// called from everywhere.
type Registry struct {
	opts        Options
	rules       []compiled
	executables bool // a rule asks for it
	matches     []atomic.Uint64

	mu       sync.Mutex
	users    map[User]*user     // who have a slot
	slots    map[uint32]int     // of a user id
	others   *user              // all without a slot
	totals   map[uint32]*totals // of user ids
	rest     *totals            // of all others
	born     uint64             // slots that were given
	nowNs    uint64             // when an interval ended last
	channels int

	othersSamples atomic.Uint64
	keyBytes      atomic.Int64 // of all users
}

// NewRegistry returns an empty Registry, or what is wrong with the rules.
func NewRegistry(opts Options) (*Registry, error) {
	rules, err := compile(opts.Rules)
	if err != nil {
		return nil, fmt.Errorf("rules of labels: %w", err)
	}
	if len(opts.Salt) == 0 {
		opts.Salt = make([]byte, 32)
		_, _ = rand.Read(opts.Salt) // cannot fail, see crypto/rand
	}
	r := &Registry{opts: opts, rules: rules, matches: make([]atomic.Uint64, len(rules))}
	for i := range rules {
		r.executables = r.executables || rules[i].Executable != ""
	}
	r.Reset()
	return r, nil
}

// Reset forgets all users. Channels must not be used afterwards.
func (r *Registry) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.users, r.slots = map[User]*user{}, map[uint32]int{}
	r.totals, r.rest = map[uint32]*totals{}, &totals{}
	r.others = r.newOthers()
	r.keyBytes.Store(0)
}

func (r *Registry) newOthers() *user {
	u := newUser(User{}, r.rest, &r.keyBytes)
	u.others, u.idleNs = true, r.nowNs
	return u
}

// Count takes note that a sample has what was decoded.
func (r *Registry) Count(d *Decoded) {
	if d.tally == nil {
		return
	}
	d.tally.user.totals.count(d.tally)
	if d.tally.user.others {
		r.othersSamples.Add(1)
	}
	for _, m := range d.tally.matches {
		r.matches[m.rule].Add(uint64(m.labels))
	}
}

// RuleMatches is how many labels of samples the rule of a number was applied to.
func (r *Registry) RuleMatches(rule int) uint64 { return r.matches[rule].Load() }

// OthersSamples is how many samples with labels were of users beyond Budgets.Users.
func (r *Registry) OthersSamples() uint64 { return r.othersSamples.Load() }
