package labels

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

var alice, bob = User{UID: 1000}, User{UID: 1001}

func newTestRegistry(t testing.TB, change func(*Options)) *Registry {
	opts := Options{Budgets: DefaultBudgets(), Salt: []byte("salt")}
	if change != nil {
		change(&opts)
	}
	r, err := NewRegistry(opts)
	require.NoError(t, err)
	return r
}

func of(u User) Origin { return Origin{User: u, Executable: "/usr/bin/" + fmt.Sprint(u.UID)} }

func statsOf(r *Registry, u User) (found UserStats) {
	r.Users(func(s *UserStats) {
		if s.UID == u.UID && !s.Others {
			found = *s
		}
	})
	return found
}

// ids are the key ids of a user; those of thread contexts have a name of two parts.
func (r *Registry) ids(u User) map[string]uint32 {
	out := map[string]uint32{}
	for name, k := range r.users[u].keys {
		if name.context {
			name.name = "context " + name.name
		}
		out[name.name] = k.id
	}
	return out
}

// Keys have one id for all processes of a user, channels and intervals; another look
// at them changes nothing.
func TestKeysAreStable(t *testing.T) {
	r := newTestRegistry(t, nil)
	ch, other := r.NewChannel(), r.NewChannel()
	ch.Decode(of(alice), nil, v1(kv("a", "1"), kv("b", "2")))
	ids := r.ids(alice)
	require.Equal(t, map[string]uint32{"a": 0, "b": 1}, ids)
	for _, c := range []*Channel{ch, other, ch} {
		for _, keys := range []*KeyMap{nil, NewKeyMap([]string{"x"}), NewKeyMap([]string{"x"})} { // a rescan makes a new one
			c.Decode(Origin{User: alice, Executable: "/another"}, keys, v1(kv("b", "3"), kv("a", "4")))
			c.EndInterval(0)
		}
	}
	require.Equal(t, ids, r.ids(alice))
	ch.Decode(of(bob), nil, v1(kv("b", "1")))
	require.Equal(t, map[string]uint32{"b": 0}, r.ids(bob))
	r.Reset()
	require.Empty(t, r.users)
}

// The set keeps the sample; labels and link go, and each is counted by user.
func TestBudgets(t *testing.T) {
	withLink := func(s []byte) []byte { return join(s, contextRecord{link: linkA, valid: 1}.block()) }
	for budget, tc := range map[Budget]struct {
		limits       Budgets
		first, again []byte // fit, the second in the next interval, too
		second       []byte // does not fit
		nextInterval bool   // there is room then
	}{
		BudgetKeys:   {Budgets{1, 2, 100, 100, 1 << 20}, v1(kv("a", "1"), kv("b", "1")), v1(kv("a", "2")), v1(kv("a", "1"), kv("c", "1")), false},
		BudgetValues: {Budgets{1, 100, 2, 100, 1 << 20}, v1(kv("a", "1"), kv("b", "1")), v1(kv("a", "1")), v1(kv("a", "2")), true},
		BudgetSets:   {Budgets{1, 100, 100, 1, 1 << 20}, v1(kv("a", "1"), kv("b", "1")), v1(kv("b", "1"), kv("a", "1")), v1(kv("a", "1")), true},
	} {
		r := newTestRegistry(t, func(o *Options) { o.Budgets = tc.limits })
		ch := r.NewChannel()
		decode := func(section []byte) *Decoded {
			d := ch.Decode(of(alice), names, withLink(section))
			r.Count(d)
			r.Count(d)
			return d
		}
		require.Equal(t, linkA, decode(tc.first).Link, budget)
		require.False(t, decode(tc.again).Set.Overflow(), budget)
		over := decode(tc.second)
		require.Same(t, OverflowSet(), over.Set, budget)
		require.True(t, over.Link.IsZero(), budget)
		require.Zero(t, over.Set.Len())
		require.False(t, decode(tc.first).Set.Overflow(), "what was there has room")
		require.False(t, decode(nil).Set.Overflow())
		var want UserStats
		want.Overflow[budget] = 2
		require.Equal(t, want.Overflow, statsOf(r, alice).Overflow)
		ch.EndInterval(0)
		require.NotZero(t, statsOf(r, alice).Used[budget])
		require.Equal(t, !tc.nextInterval, decode(tc.second).Set.Overflow(), budget)
		require.False(t, decode(v1()).Set.Overflow(), "no labels take no room")
	}
}

func TestBudgetBytes(t *testing.T) {
	r := newTestRegistry(t, func(o *Options) { o.Budgets.Bytes = MinBudgetBytes })
	ch := r.NewChannel()
	n := 0
	for ; ; n++ {
		d := ch.Decode(of(alice), nil, v1(kv("a", fmt.Sprintf("%01000d", n))))
		r.Count(d)
		if d.Set.Overflow() {
			break
		}
	}
	require.InDelta(t, 50, n, 10)
	require.EqualValues(t, 1, statsOf(r, alice).Overflow[BudgetBytes])
	for i := range 10_000 {
		ch.Decode(of(alice), nil, v1(kv("a", fmt.Sprintf("%01000d", i))))
		ch.Decode(of(alice), NewKeyMap([]string{fmt.Sprintf("%01000d", i)}), v1(kv("a", "1")))
	}
	require.Less(t, ch.Bytes(), 2*MinBudgetBytes+5000)
	require.False(t, ch.Decode(of(bob), nil, v1(kv("a", fmt.Sprintf("%01000d", n)))).Set.Overflow())
}

// Users beyond the cap share one user's budgets, and take none of the others'.
func TestOtherUsers(t *testing.T) {
	r := newTestRegistry(t, func(o *Options) { o.Budgets.Users, o.Budgets.Sets = 2, 2 })
	ch := r.NewChannel()
	set := func(uid int, value string) *Set {
		d := ch.Decode(of(User{UID: uint32(uid)}), nil, v1(kv("a", value)))
		r.Count(d)
		return d.Set
	}
	require.False(t, set(1, "1").Overflow())
	require.False(t, set(2, "1").Overflow())
	require.False(t, set(3, "1").Overflow())
	require.False(t, set(4, "2").Overflow())
	require.True(t, set(5, "3").Overflow())
	require.True(t, set(3, "3").Overflow())
	require.False(t, set(2, "3").Overflow())
	require.EqualValues(t, 4, r.OthersSamples())
	var others []UserStats
	r.Users(func(s *UserStats) {
		if s.Others {
			others = append(others, *s)
		}
	})
	require.Len(t, others, 1)
	require.EqualValues(t, 2, others[0].Overflow[BudgetSets])
}

// Users who share a budget are seen, too, where none of their labels has had room for its key.
func TestOtherUsersWithoutKeys(t *testing.T) {
	r := newTestRegistry(t, func(o *Options) { o.Budgets.Users, o.Budgets.Keys = 1, 1 })
	ch := r.NewChannel()
	count := func(uid uint32, labels []byte) {
		r.Count(ch.Decode(of(User{UID: uid}), nil, labels))
	}
	others := func() (list []UserStats) {
		r.Users(func(s *UserStats) {
			if s.Others {
				list = append(list, *s)
			}
		})
		return list
	}
	count(1, v1(kv("a", "1")))
	require.Empty(t, others(), "there are none")
	count(2, v1(kv("a", "1"), kv("b", "1")))
	require.Len(t, others(), 1)
	require.Zero(t, others()[0].Used[BudgetKeys])
	require.EqualValues(t, 1, others()[0].Overflow[BudgetKeys])
}

func TestTypeConflicts(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		var reports []Conflict
		r := newTestRegistry(t, func(o *Options) {
			o.Refuse = refuse
			o.OnConflict = func(c Conflict) { reports = append(reports, c) }
		})
		ch := r.NewChannel()
		decode := func(u User, section []byte) (out []Label, truncated bool) {
			d := ch.Decode(of(u), nil, section)
			r.Count(d)
			return collected(d.Set), d.Set.Truncated()
		}
		decode(alice, v1(kv("a", "text"), kv("b", "\xff")))
		for range 3 { // rescans, other processes, later intervals
			got, truncated := decode(alice, v1(kv("a", "\xfe"), kv("b", "\xff"), kv("c", "1")))
			require.Equal(t, refuse, truncated)
			want := []Label{{"a", `\xfe`, record.ABIV1}, {"b", "\xff", record.ABIV1}, {"c", "1", record.ABIV1}}
			if refuse {
				want = want[1:]
			}
			require.Equal(t, want, got)
			ch.EndInterval(0)
		}
		require.Equal(t, []Conflict{{
			User: alice, Key: "a", Source: record.ABIV1, Before: "text", Now: "bytes", Refused: refuse, Executable: "/usr/bin/1000",
		}}, reports)
		require.EqualValues(t, 3, statsOf(r, alice).Refused+statsOf(r, alice).Stringified)

		reports = nil
		for i := range 2 * MaxConflicts {
			decode(User{UID: 3000}, v1(kv(fmt.Sprint(i), "text")))
			decode(User{UID: 3000}, v1(kv(fmt.Sprint(i), "\xff")))
		}
		require.Len(t, reports, MaxConflicts)
		for i, c := range reports {
			require.Equal(t, i == MaxConflicts-1, c.Last)
		}

		got, _ := decode(bob, v1(kv("a", "\xfe"))) // who has his own types
		require.Equal(t, []Label{{"a", "\xfe", record.ABIV1}}, got)
		if refuse {
			continue
		}
		// Text that looks like escaped bytes stays another value, and none is escaped twice.
		set := ch.Decode(of(alice), nil, v1(kv("a", "\xfe"), kv("b", "\xff"))).Set
		require.Equal(t, map[string]string{"a": `\xfe`, "b": `\xff`}, textsOf(set))
		got, _ = decode(alice, v1(kv("a", `\xfe`)))
		require.Equal(t, []Label{{"a", `\x5cxfe`, record.ABIV1}}, got)
		require.EqualValues(t, 4, statsOf(r, alice).Stringified)
		got, _ = decode(alice, v1(kv("a", "plain")))
		require.Equal(t, []Label{{"a", "plain", record.ABIV1}}, got)
		require.EqualValues(t, 4, statsOf(r, alice).Stringified, "it is what it was")
	}
}

// textsOf is a set as valid UTF-8.
func textsOf(s *Set) map[string]string {
	texts := map[string]string{}
	for l := range s.All() {
		texts[l.Key] = s.Text(&l)
	}
	return texts
}

// TestTypeConflictKeepsTexts: what a value is as text does not depend on whether its key has had values of another
// type before. Values that only look alike are in sets of their own.
func TestTypeConflictKeepsTexts(t *testing.T) {
	ch := newTestRegistry(t, func(o *Options) { o.Refuse = false }).NewChannel()
	decode := func(value string) *Set { return ch.Decode(of(alice), nil, v1(kv("a", value))).Set }
	before := decode(`\xfe`)
	require.Equal(t, `\x5cxfe`, textsOf(before)["a"])
	after := decode("\xfe")
	require.Equal(t, `\xfe`, textsOf(after)["a"])
	require.NotSame(t, before, after)
	require.Equal(t, `\x5cxfe`, textsOf(decode(`\xfe`))["a"])
	require.Equal(t, "text", textsOf(decode("text"))["a"])
}

// What Escape would not change is not escaped.
func TestEscapes(t *testing.T) {
	for _, value := range []string{"", "plain", "ü", `\`, `\X41`, `\x`, `a\x41`, "\xff", "ü\xc3", "\x00"} {
		require.Equal(t, Escape(value) != value, escapes([]byte(value)), "%q", value)
	}
}

// What was read of a key's values before they became text is not given out again.
func TestTypeConflictForgets(t *testing.T) {
	r := newTestRegistry(t, func(*Options) {})
	ch := r.NewChannel()
	value := func(section []byte) string {
		d := ch.Decode(of(alice), nil, section)
		r.Count(d)
		return collected(d.Set)[0].Value
	}
	require.Equal(t, "\xff", value(v1(kv("a", "\xff"))))
	require.Equal(t, "text", value(v1(kv("a", "text"))))
	require.Equal(t, `\xff`, value(v1(kv("a", "\xff"))))
	require.EqualValues(t, 1, statsOf(r, alice).Stringified)
}

// A thread context's attribute is another key than a label of its name.
func TestTypesBySource(t *testing.T) {
	r := newTestRegistry(t, func(o *Options) { o.OnConflict = func(Conflict) { t.Error("a conflict") } })
	ch := r.NewChannel()
	ch.Decode(of(alice), nil, v1(kv("zero", "text")))
	ch.Decode(of(alice), names, contextRecord{valid: 1, attrs: attr(0, "\xff")}.block())
	require.Len(t, r.users[alice].keys, 2)
}

// Users whose samples take turns have keys of their own, though they run one program.
func TestUsersOfOneProgram(t *testing.T) {
	r := newTestRegistry(t, nil)
	ch := r.NewChannel()
	for range 2 {
		ch.Decode(Origin{alice, "/usr/bin/same"}, nil, v1(kv("of alice", "1")))
		ch.Decode(Origin{bob, "/usr/bin/same"}, nil, v1(kv("of bob", "1")))
	}
	require.Equal(t, map[string]uint32{"of alice": 0}, r.ids(alice))
	require.Equal(t, map[string]uint32{"of bob": 0}, r.ids(bob))
}

// A channel forgets a user who had no sample in an interval.
func TestQuietUserIsForgotten(t *testing.T) {
	ch := newTestRegistry(t, nil).NewChannel()
	ch.Decode(of(alice), nil, v1(kv("a", "1")))
	ch.Decode(of(bob), nil, v1(kv("a", "1")))
	ch.EndInterval(0)
	ch.Decode(of(bob), nil, v1(kv("a", "1")))
	ch.EndInterval(0)
	require.NotContains(t, ch.accounts, alice)
	require.Contains(t, ch.accounts, bob)
}
