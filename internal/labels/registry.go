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
	// MaxConflicts of a user. It is called by the goroutine of a Channel; nil: nobody is told.
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
	users    map[User]*user
	others   *user // all beyond Budgets.Users
	channels int

	othersSamples atomic.Uint64
	keyBytes      atomic.Int64 // of all users
}

// NewRegistry returns an empty Registry, or what is wrong with the options.
func NewRegistry(opts Options) (*Registry, error) {
	if err := opts.Budgets.Validate(); err != nil {
		return nil, fmt.Errorf("budgets of labels: %w", err)
	}
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
	r.users = map[User]*user{}
	r.others = newUser(User{}, true, &r.keyBytes)
	r.keyBytes.Store(0)
}

// user returns what is known of a user.
func (r *Registry) user(id User) *user {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u, ok := r.users[id]; ok {
		return u
	}
	if len(r.users) >= r.opts.Budgets.Users {
		return r.others
	}
	u := newUser(id, false, &r.keyBytes)
	r.users[id] = u
	return u
}

// Count takes note that a sample has what was decoded.
func (r *Registry) Count(d *Decoded) {
	if d.tally == nil {
		return
	}
	d.tally.user.count(d.tally)
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

// UserStats is what was counted of a user.
type UserStats struct {
	User
	Others      bool               // all users beyond Budgets.Users
	Overflow    [NumBudgets]uint64 // samples whose labels a budget had no room for
	Refused     uint64             // labels of samples that were left out because of their type
	Stringified uint64             // labels of samples that were made text because of it
	// Used of each budget: of those of an interval in the last one, of the Channel that
	// took most.
	Used [NumBudgets]int
}

// any reports whether anything was counted. Labels may have been refused before any of them took anything.
func (s *UserStats) any() bool {
	return s.Used[BudgetKeys] > 0 || s.Overflow != [NumBudgets]uint64{} || s.Refused > 0 || s.Stringified > 0
}

// Users calls visit for each user, in no order, and for the others, if there are any.
func (r *Registry) Users(visit func(*UserStats)) {
	r.mu.Lock()
	list := make([]*user, 0, len(r.users)+1)
	for _, u := range r.users {
		list = append(list, u)
	}
	list = append(list, r.others)
	r.mu.Unlock()
	for _, u := range list {
		if s := u.stats(); !s.Others || s.any() {
			visit(&s)
		}
	}
}
