package labels

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A step is what one user's program has published at a sample, or the end of an interval.
type step struct {
	from    Origin
	section []byte
	end     bool
}

// run returns what a user got at each of his samples, and what was counted of him.
func run(t *testing.T, change func(*Options), steps []step, of User) (got []string, stats UserStats, ids map[string]uint32) {
	r := newTestRegistry(t, change)
	ch := r.NewChannel()
	pointers := map[*Set]string{}
	for _, s := range steps {
		if s.end {
			ch.EndInterval(0)
			clear(pointers)
			continue
		}
		d := ch.Decode(s.from, names, s.section)
		r.Count(d)
		if s.from.User != of {
			continue
		}
		text := fmt.Sprintf("%q %v %v", collected(d.Set), d.Set.Truncated(), d.Set.Overflow())
		if before, ok := pointers[d.Set]; ok {
			require.Equal(t, before, text)
		}
		pointers[d.Set] = text
		got = append(got, fmt.Sprintf("%s %v %v %v", text, d.Link, d.Reads, d.Counts))
	}
	distinct := map[string]bool{}
	for _, text := range pointers {
		require.False(t, distinct[text], "equal sets with two pointers")
		distinct[text] = true
	}
	return got, statsOf(r, of), r.ids(of)
}

// Whatever others publish, a user's samples get what they get without them, and the
// same is counted of him: with rules and conflicts, and past all budgets.
func TestUsersDoNotMeet(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 40 {
		change := func(o *Options) {
			o.Refuse = round%2 == 0
			o.Budgets = Budgets{Users: 2 + round%2, Keys: 6, Values: 40, Sets: 30, Bytes: MinBudgetBytes}
			o.Rules = []Rule{
				{Key: "ab", Action: Rename, To: "b"}, {Key: "a*", Executable: "/usr/bin/1001", Action: Hash},
				{Key: "zero", Action: CapDistinctValues, Limit: 3}, {Key: "?ne", Action: CapValueBytes, Limit: 2},
			}
		}
		// Bob is there from the beginning; the last user has no budgets of his own.
		first := step{from: of(bob), section: v1(kv("b", "1"))}
		alone, mixed := []step{first}, []step{first}
		for range 1500 {
			switch n := r.IntN(100); {
			case n == 0:
				alone, mixed = append(alone, step{end: true}), append(mixed, step{end: true})
			case n < 30:
				s := step{from: of(bob), section: randomSection(r)}
				alone, mixed = append(alone, s), append(mixed, s)
			default:
				flood := v1(kv(fmt.Sprint("key", r.IntN(1000)), fmt.Sprint(r.Uint64())), kv("b", string([]byte{byte(r.Uint32())})))
				if n < 50 {
					flood = randomSection(r)
				}
				mixed = append(mixed, step{from: of(User{UID: 2000 + uint32(r.IntN(5))}), section: flood})
			}
		}
		want, wantStats, wantIDs := run(t, change, alone, bob)
		got, gotStats, gotIDs := run(t, change, mixed, bob)
		require.Equal(t, want, got)
		require.Equal(t, wantStats, gotStats)
		require.Equal(t, wantIDs, gotIDs)
		require.NotZero(t, wantStats.Overflow, "the budgets were never used up")
	}
}

// One user's flood fills neither another one's memory nor his budgets.
func TestFlood(t *testing.T) {
	r := newTestRegistry(t, nil)
	ch := r.NewChannel()
	section := v1(kv("tenant", "b"))
	want := ch.Decode(of(bob), nil, section)
	limits := DefaultBudgets()
	for i := range 100_000 {
		key := fmt.Sprint("key", i%10_000)
		value := fmt.Sprint(i)
		if i%3 == 0 {
			value = "\xff" + value
		}
		d := ch.Decode(of(alice), nil, v1(kv(key, value), kv("a", "1")))
		r.Count(d)
		if i%1000 == 0 {
			require.Same(t, want, ch.Decode(of(bob), nil, section))
		}
	}
	stats := statsOf(r, alice)
	require.Equal(t, limits.Keys, stats.Used[BudgetKeys])
	require.NotZero(t, stats.Overflow[BudgetKeys])
	require.NotZero(t, stats.Overflow[BudgetSets])
	require.Less(t, ch.Bytes(), 2*limits.Bytes+300_000)
	require.Zero(t, statsOf(r, bob).Overflow)
}
