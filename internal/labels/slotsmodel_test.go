package labels

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// modelUser is what a user's labels have been since he has his slot, by the pointer that the Registry has for him,
// which no other user has as long as the model knows it.
type modelUser struct {
	id    User
	kinds map[string]valueKind
}

// modelChannel is what was seen in an interval.
type modelChannel struct {
	*Channel
	users map[User]*user             // whose budgets a user took
	sets  map[*user]map[string]*Set  // by their labels
	back  map[*Set]map[string]string // a set's labels
}

func (c *modelChannel) reset() {
	c.users, c.sets, c.back = map[User]*user{}, map[*user]map[string]*Set{}, map[*Set]map[string]string{}
}

// slotsModel compares a Registry, through which many users come and go over two Channels, with a simple model.
type slotsModel struct {
	t        *testing.T
	r        *Registry
	rand     *rand.Rand
	channels []*modelChannel
	users    map[*user]*modelUser
	seen     map[User]time.Duration
	slots    map[User]*user // before the step
	now      time.Duration
	changed  uint64 // labels made text
}

func (m *slotsModel) value() string {
	return []string{"1", "2", `\xff`, "\xff", "\xfe"}[m.rand.IntN(5)]
}

// step has a user publish one or two labels.
func (m *slotsModel) step() {
	c := m.channels[m.rand.IntN(len(m.channels))]
	id := User{UID: uint32(m.rand.IntN(6)), Container: fmt.Sprint(m.rand.IntN(3))}
	published := map[string]string{"abcd"[m.rand.IntN(4):][:1]: m.value(), fmt.Sprint(id): m.value()}
	var section []raw
	for key, value := range published {
		section = append(section, kv(key, value))
	}
	m.remember()
	others := m.r.others
	d := c.Decode(of(id), nil, v1(section...))
	m.r.Count(d)
	u := c.lastAccount.user
	m.slot(c, id, u, others)
	if !u.others {
		m.seen[id] = m.now
	}
	m.labels(c, u, id, published, d)
}

func (m *slotsModel) remember() {
	clear(m.slots)
	for id, u := range m.r.users {
		m.slots[id] = u
	}
}

// slot checks whose budgets a user took.
func (m *slotsModel) slot(c *modelChannel, id User, u, others *user) {
	if before, ok := c.users[id]; ok {
		require.Same(m.t, before, u, "in one interval a user takes the same budgets")
	}
	c.users[id] = u
	if u.others {
		require.Same(m.t, m.r.others, u)
		if u != others {
			for _, c := range m.channels {
				require.NotSame(m.t, others, c.others)
			}
		}
	} else {
		require.Equal(m.t, id, u.id)
		require.Same(m.t, m.r.users[id], u)
	}
	require.LessOrEqual(m.t, len(m.r.users), m.r.opts.Budgets.Users)
	counts := map[uint32]int{}
	for id := range m.r.users {
		counts[id.UID]++
	}
	require.Equal(m.t, counts, m.r.slots)
	before := map[uint32]int{}
	for id := range m.slots {
		before[id.UID]++
	}
	gone := 0
	for old, who := range m.slots {
		if m.r.users[old] == who {
			continue
		}
		gone++
		idle := m.now - m.seen[old]
		require.Len(m.t, m.slots, m.r.opts.Budgets.Users, "there was none left")
		require.GreaterOrEqual(m.t, idle, lendAfter)
		require.True(m.t, idle >= freeAfter || old.UID == id.UID || before[old.UID] > before[id.UID])
		for _, c := range m.channels {
			require.NotContains(m.t, c.accounts, old)
		}
		require.NotContains(m.t, m.r.users, old)
		require.NotSame(m.t, who, u)
	}
	require.LessOrEqual(m.t, gone, 1)
}

// labels checks what became of them.
func (m *slotsModel) labels(c *modelChannel, u *user, id User, published map[string]string, d *Decoded) {
	of := m.users[u]
	if of == nil {
		of = &modelUser{id: u.id, kinds: map[string]valueKind{}}
		m.users[u] = of
	}
	require.Equal(m.t, of.id, u.id, "one user has been two")
	want, escaped := map[string]string{}, map[string]bool{}
	for key, value := range published {
		kind, ok := of.kinds[key]
		if !ok {
			kind = kindOf([]byte(value))
		}
		if kind != escapedValues && kind != kindOf([]byte(value)) {
			kind = escapedValues
		}
		of.kinds[key] = kind
		want[key] = value
		if kind == escapedValues {
			want[key] = Escape(value)
		}
		if want[key] != value {
			m.changed++
			escaped[key] = true
		}
	}
	got := map[string]string{}
	for l := range d.Set.All() {
		got[l.Key] = l.Value
	}
	require.Equal(m.t, want, got, "%v", id)
	text := fmt.Sprintf("%q %v", want, escaped) // what only looks like it is another one
	if c.sets[u] == nil {
		c.sets[u] = map[string]*Set{}
	}
	if before := c.sets[u][text]; before != nil {
		require.Same(m.t, before, d.Set)
	}
	if before, ok := c.back[d.Set]; ok {
		require.Equal(m.t, before, got, "different sets are one")
	}
	c.sets[u][text], c.back[d.Set] = d.Set, got
	seen := map[uint32]bool{}
	for _, k := range u.keys {
		require.False(m.t, seen[k.id], "two keys have one id")
		seen[k.id] = true
	}
}

// pass ends the interval of one Channel.
func (m *slotsModel) pass() {
	switch n := m.rand.IntN(100); {
	case n == 0:
		m.now += freeAfter
	case n < 60:
		m.now += time.Duration(m.rand.Int64N(int64(lendAfter)))
	}
	c := m.channels[m.rand.IntN(len(m.channels))]
	c.EndInterval(uint64(m.now))
	c.reset()
}

func (m *slotsModel) check() {
	bytes, changed := m.r.others.bytes, uint64(0)
	for _, u := range m.r.users {
		bytes += u.bytes
	}
	m.r.Users(func(s *UserStats) { changed += s.Stringified })
	require.Equal(m.t, bytes, m.channels[0].KeyBytes())
	require.Equal(m.t, m.changed, changed)
}

// Whoever comes and goes, over whichever Channel, has his own labels, and no slot of who is not idle.
func TestSlotsModel(t *testing.T) {
	taken := 0
	for round := range 14 {
		r := newTestRegistry(t, func(o *Options) { o.Budgets.Users = 1 + round%7 })
		m := &slotsModel{
			t: t, r: r, rand: rand.New(rand.NewPCG(uint64(round), 7)),
			users: map[*user]*modelUser{}, seen: map[User]time.Duration{}, slots: map[User]*user{},
		}
		for range 2 {
			c := &modelChannel{Channel: r.NewChannel()}
			c.reset()
			m.channels = append(m.channels, c)
		}
		for range 3000 {
			if m.rand.IntN(8) == 0 {
				m.pass()
			} else {
				m.step()
			}
		}
		m.check()
		taken += len(m.users)
	}
	require.Greater(t, taken, 500, "too few slots were given again")
}

// Two Channels at once, each on its goroutine, while slots are given again and again: a user has his own keys, or none.
func TestSlotsConcurrently(t *testing.T) {
	r := newTestRegistry(t, func(o *Options) { o.Budgets.Users, o.Budgets.Keys = 4, 64 })
	var wg sync.WaitGroup
	for n := range uint64(2) {
		c, rnd := r.NewChannel(), rand.New(rand.NewPCG(n, 1))
		wg.Go(func() {
			for i := range uint64(20_000) {
				id := User{UID: rnd.Uint32N(10)}
				key := fmt.Sprint(id.UID, " ", rnd.IntN(5))
				d := c.Decode(of(id), nil, v1(kv(key, key)))
				r.Count(d)
				if got := collected(d.Set); len(got) != 1 || got[0].Key != key || got[0].Value != key {
					t.Errorf("%s: %v", key, got)
					return
				}
				if rnd.IntN(4) == 0 {
					c.EndInterval(i * uint64(lendAfter) / 4)
				}
				if i%1000 == 0 {
					r.Users(func(*UserStats) {})
				}
			}
		})
	}
	wg.Wait()
	require.Greater(t, r.born, uint64(100))
}
