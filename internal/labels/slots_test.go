package labels

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slotsFixture is a Registry with two Channels at a time.
type slotsFixture struct {
	t        *testing.T
	r        *Registry
	cpu, off *Channel
	now      time.Duration
}

func newSlots(t *testing.T, change func(*Options)) *slotsFixture {
	r := newTestRegistry(t, change)
	return &slotsFixture{t: t, r: r, cpu: r.NewChannel(), off: r.NewChannel()}
}

// pass ends an interval of both Channels after a time.
func (f *slotsFixture) pass(d time.Duration) {
	f.now += d
	f.cpu.EndInterval(uint64(f.now))
	f.off.EndInterval(uint64(f.now))
}

// quiet lets so much time pass with nobody.
func (f *slotsFixture) quiet(d time.Duration) {
	f.pass(0) // users of the interval before
	f.pass(0) // have no account now
	f.pass(d)
}

// decode reports whether a user's label comes out, and is counted.
func (f *slotsFixture) decode(c *Channel, u User, key, value string) bool {
	d := c.Decode(of(u), nil, v1(kv(key, value)))
	f.r.Count(d)
	if d.Set.Overflow() {
		return false
	}
	require.Equal(f.t, key, collected(d.Set)[0].Key)
	return true
}

func (f *slotsFixture) has(u User) bool { return f.r.users[u] != nil }

func container(uid uint32, n int) User { return User{UID: uid, Container: fmt.Sprint(n)} }

// Containers come and go for as long as one likes: each has budgets of its own, and what one of those without did is
// forgotten.
func TestSlotsOfContainersThatAreGone(t *testing.T) {
	f := newSlots(t, nil)
	users := DefaultBudgets().Users
	for n := range users {
		require.True(t, f.decode(f.cpu, container(0, n), "tenant", "a"))
	}
	late := container(0, 1000)
	for i := range DefaultBudgets().Keys {
		require.True(t, f.decode(f.cpu, late, fmt.Sprint(i), "1"))
	}
	require.False(t, f.decode(f.cpu, late, "another", "1"))
	require.False(t, f.decode(f.cpu, container(0, 1001), "tenant", "a"), "they share a budget")
	require.False(t, f.has(late))
	for n := range 10 * users {
		f.quiet(lendAfter)
		require.True(t, f.decode(f.cpu, container(0, 2000+n), "tenant", "a"))
		require.True(t, f.has(container(0, 2000+n)))
		require.LessOrEqual(t, len(f.r.users), users)
	}
	for n := range users {
		f.decode(f.cpu, container(0, n), "tenant", "a")
	}
	require.True(t, f.decode(f.cpu, container(0, 3000), "tenant", "a"), "keys of long ago are forgotten")
	require.False(t, f.has(container(0, 3000)))
	bytes := f.r.others.bytes
	for _, u := range f.r.users {
		bytes += u.bytes
	}
	require.Equal(t, bytes, f.cpu.KeyBytes(), "of those who are gone nothing is counted")
}

// Users without a slot who keep coming keep their keys; they have one as soon as there is one.
func TestOtherUsersGetSlots(t *testing.T) {
	f := newSlots(t, func(o *Options) { o.Budgets.Users = 1 })
	f.decode(f.cpu, alice, "a", "1")
	for range 20 {
		require.True(t, f.decode(f.cpu, bob, "b", "1"))
		f.decode(f.off, alice, "a", "1")
		f.pass(lendAfter / 2)
	}
	others := f.r.others
	require.Contains(t, others.keys, keyName{false, "b"})
	require.True(t, f.has(alice), "seen in the other channel")
	for range 3 { // nobody without a slot, but not for long
		f.decode(f.off, alice, "a", "1")
		f.pass(lendAfter / 4)
	}
	f.decode(f.cpu, bob, "b", "1")
	require.Same(t, others, f.r.others)
	for range 4 {
		f.pass(lendAfter / 2)
		f.decode(f.cpu, bob, "b", "1")
	}
	require.True(t, f.has(bob))
	require.False(t, f.has(alice))
}

// A key keeps its type as long as nobody wants the slot, however long its user pauses; then it begins anew.
func TestSlotsKeepTypes(t *testing.T) {
	f := newSlots(t, func(o *Options) { o.Budgets.Users, o.Refuse = 1, true })
	value := func(u User, value string) int {
		d := f.cpu.Decode(of(u), nil, v1(kv("a", value)))
		f.r.Count(d)
		return d.Set.Len()
	}
	require.Equal(t, 1, value(alice, "text"))
	f.quiet(100 * freeAfter)
	require.Zero(t, value(alice, "\xff"), "of another type")
	f.quiet(lendAfter - 1)
	require.Equal(t, 1, value(bob, "\xff"), "he shares the others'")
	f.quiet(lendAfter)
	require.Equal(t, 1, value(bob, "\xff"), "he has a slot")
	require.Equal(t, 1, value(alice, "text"), "she shares the others', which are new")
	f.quiet(lendAfter)
	require.Equal(t, 1, value(alice, "\xff"), "she begins anew")
	require.EqualValues(t, 1, statsOf(f.r, alice).Refused, "what was counted stays")
	require.Equal(t, 0, statsOf(f.r, bob).Slots)
	require.Equal(t, 1, statsOf(f.r, alice).Slots)
}

// Who can make many containers has no slot of a user who has labels, nor one of a user who pauses and has no more
// slots than he; who is gone for a day has none any more.
func TestSlotsAreNotTaken(t *testing.T) {
	f := newSlots(t, func(o *Options) { o.Budgets.Users = 8 })
	paused, living := container(1, 0), container(2, 0)
	f.decode(f.cpu, paused, "a", "1")
	f.decode(f.cpu, container(3, 0), "a", "1")
	f.decode(f.cpu, container(3, 1), "a", "1")
	hostile := 0
	flood := func(many int) {
		for range many {
			hostile++
			f.decode(f.cpu, container(666, hostile), "a", "1")
		}
	}
	for range 50 {
		f.decode(f.cpu, living, "a", "1")
		flood(20)
		f.pass(lendAfter / 5)
	}
	require.True(t, f.has(paused))
	require.True(t, f.has(living))
	require.True(t, f.has(container(3, 0)))
	require.True(t, f.has(container(3, 1)))
	require.Len(t, f.r.users, 8)
	require.Equal(t, map[uint32]int{1: 1, 2: 1, 3: 2, 666: 4}, f.r.slots)

	// Another one who has none gets one of those who have more than he, which was idle longest.
	f.pass(lendAfter)
	f.decode(f.cpu, container(4, 0), "a", "1")
	require.False(t, f.has(paused), "it has one, the other had none")
	f.decode(f.cpu, container(4, 1), "a", "1")
	require.False(t, f.has(container(3, 0)) && f.has(container(3, 1)))
	require.Equal(t, map[uint32]int{2: 1, 3: 1, 4: 2, 666: 4}, f.r.slots)
	for f.has(container(3, 0)) || f.has(container(3, 1)) {
		require.Less(t, f.now, 100*time.Hour)
		f.decode(f.cpu, living, "a", "1")
		for n := range hostile {
			f.decode(f.cpu, container(666, n), "a", "1")
		}
		f.pass(lendAfter)
	}
	require.Greater(t, f.now, freeAfter)
	require.True(t, f.has(living))
}

// A user's own slots go first.
func TestSlotsOfOnesOwn(t *testing.T) {
	f := newSlots(t, func(o *Options) { o.Budgets.Users = 3 })
	f.decode(f.cpu, container(1, 0), "a", "1")
	f.decode(f.cpu, container(1, 1), "a", "1")
	f.quiet(lendAfter)
	f.decode(f.cpu, container(2, 0), "a", "1")
	f.quiet(lendAfter)
	f.decode(f.cpu, container(2, 1), "a", "1")
	require.True(t, f.has(container(1, 0)), "it was idle longer")
	require.False(t, f.has(container(2, 0)))
}

// Of several slots that may be taken it is the one whose user has had no labels for longest.
func TestSlotsIdleLongestGoFirst(t *testing.T) {
	f := newSlots(t, func(o *Options) { o.Budgets.Users = 20 })
	for n := range 20 {
		f.decode(f.cpu, container(uint32(n*7%20), 0), "a", "1")
		f.pass(time.Minute)
	}
	f.quiet(lendAfter)
	for n := range 20 {
		require.True(t, f.has(container(uint32(n*7%20), 0)))
		f.decode(f.cpu, container(uint32(100+n), 0), "a", "1")
		require.False(t, f.has(container(uint32(n*7%20), 0)))
		require.Len(t, f.r.users, 20)
	}
}

// Who shares the others' budgets does so to the end of the interval, also if he has a slot meanwhile by way of the
// other channel; those who had one before are not concerned.
func TestSlotsWithinAnInterval(t *testing.T) {
	f := newSlots(t, func(o *Options) { o.Budgets.Users = 2 })
	carol := User{UID: 1002}
	f.decode(f.off, carol, "c", "1")
	f.decode(f.cpu, alice, "a", "1")
	set := f.cpu.Decode(of(bob), nil, v1(kv("b", "1"))).Set
	for _, now := range []uint64{1, 1, uint64(lendAfter) + 1} {
		f.off.EndInterval(now)
	}
	f.decode(f.off, bob, "b", "1")
	require.True(t, f.has(bob), "for who has gone")
	require.Same(t, set, f.cpu.Decode(of(bob), nil, v1(kv("b", "1"))).Set)
	require.True(t, f.decode(f.cpu, alice, "a", "1"))
	require.Same(t, f.r.users[alice], f.cpu.lastAccount.user)
	f.cpu.EndInterval(uint64(lendAfter) + 1)
	f.decode(f.cpu, bob, "b", "1")
	require.Same(t, f.r.users[bob], f.cpu.lastAccount.user)

	f.decode(f.cpu, carol, "c", "1") // has to share
	require.Same(t, f.r.others, f.cpu.lastAccount.user)
	f.off.EndInterval(uint64(lendAfter) + 1)
	f.decode(f.off, alice, "a", "1")
	require.Same(t, f.r.users[alice], f.off.lastAccount.user)
}

// Who has no slot in an interval, time and again, does not keep one from another user id that may have one.
func TestSlotsAreNotDenied(t *testing.T) {
	f := newSlots(t, func(o *Options) { o.Budgets.Users = 2 })
	f.decode(f.cpu, container(1, 0), "a", "1")
	for range 10 {
		f.decode(f.cpu, container(666, 0), "a", "1")
		f.pass(lendAfter / 5)
		f.decode(f.cpu, container(666, 0), "a", "1")
		f.decode(f.cpu, container(666, 1), "a", "1") // has none
	}
	require.False(t, f.has(container(666, 1)))
	f.decode(f.cpu, container(2, 0), "a", "1")
	require.True(t, f.has(container(2, 0)))
	require.False(t, f.has(container(1, 0)))
}

// However many share the others' budgets do so to the end of the interval.
func TestSlotsOfManyWithinAnInterval(t *testing.T) {
	f := newSlots(t, func(o *Options) { o.Budgets.Users = 2 })
	f.decode(f.off, container(1, 0), "a", "1")
	f.decode(f.cpu, container(2, 0), "a", "1")
	for uid := range uint32(2 * maxSharing) {
		f.decode(f.cpu, container(1000+uid, 0), "a", "1")
	}
	require.Len(t, f.cpu.sharing, maxSharing)
	for _, now := range []uint64{1, 1, uint64(lendAfter) + 1} {
		f.off.EndInterval(now)
	}
	last := container(1000+2*maxSharing-1, 0)
	f.decode(f.off, last, "a", "1")
	require.True(t, f.has(last))
	for uid := range uint32(2 * maxSharing) {
		f.decode(f.cpu, container(1000+uid, 0), "a", "1")
		require.Same(t, f.r.others, f.cpu.lastAccount.user)
	}
	f.decode(f.cpu, container(2, 0), "a", "1")
	require.Same(t, f.r.users[container(2, 0)], f.cpu.lastAccount.user)
	f.cpu.EndInterval(uint64(lendAfter) + 1)
	f.decode(f.cpu, last, "a", "1")
	require.Same(t, f.r.users[last], f.cpu.lastAccount.user)
}

// What is counted of a user id is never less, and of others than the first ones together.
func TestTotalsOfFreedSlots(t *testing.T) {
	var reports []Conflict
	f := newSlots(t, func(o *Options) {
		o.Budgets.Users, o.Budgets.Sets = 2, 1
		o.OnConflict = func(c Conflict) { reports = append(reports, c) }
	})
	before := map[uint32]UserStats{}
	overflow := uint64(0)
	for n := range 100 {
		u := container(uint32(n%5), n)
		f.decode(f.cpu, u, "a", "text")
		f.decode(f.cpu, u, "a", "\xff")
		overflow++
		f.quiet(lendAfter)
		var sum uint64
		f.r.Users(func(s *UserStats) {
			key := s.UID
			if s.Others {
				key = 1 << 31
			}
			was := before[key]
			require.GreaterOrEqual(t, s.Overflow[BudgetSets], was.Overflow[BudgetSets])
			require.GreaterOrEqual(t, s.Stringified, was.Stringified)
			before[key] = *s
			sum += s.Overflow[BudgetSets]
		})
		require.Equal(t, overflow, sum)
		require.LessOrEqual(t, len(before), 3)
	}
	require.Len(t, reports, 3*MaxConflicts, "a user id has them once")
}
