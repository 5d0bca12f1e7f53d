package labels

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Without rules and within budgets a Channel gives what Decode does.
func TestChannelDecodes(t *testing.T) {
	ch := newTestRegistry(t, nil).NewChannel()
	for name, section := range benchSections() {
		want, got := Decode(names, section), ch.Decode(of(alice), names, section)
		require.Equal(t, collected(want.Set), collected(got.Set), name)
		require.Equal(t, want.Set.Truncated(), got.Set.Truncated(), name)
		require.Equal(t, want.Link, got.Link, name)
		require.Equal(t, want.Reads, got.Reads, name)
		require.Equal(t, want.Counts, got.Counts, name)
		require.Same(t, got, ch.Decode(of(alice), names, section), name)
	}
}

func TestChannelSharesResults(t *testing.T) {
	ch := newTestRegistry(t, nil).NewChannel()
	section := join(v0(kv("a", "1")), v1(kv("b", "2")))
	d := ch.Decode(of(alice), nil, section)
	require.Same(t, d, ch.Decode(of(alice), nil, append([]byte(nil), section...)))
	require.NotSame(t, d, ch.Decode(of(alice), names, section), "the key map is part of the key")
	require.Same(t, d.Set, ch.Decode(of(alice), names, section).Set)
}

func TestChannelKeepsNothingOfTheSection(t *testing.T) {
	ch := newTestRegistry(t, nil).NewChannel()
	section := v1(kv("key", "value"))
	d := ch.Decode(of(alice), nil, section)
	copied := append([]byte(nil), section...)
	clear(section)
	ch.Decode(of(alice), nil, custom(record.ABIV0, record.OutcomeFault)) // uses the same scratch memory
	require.Equal(t, []Read{{record.ABIV1, record.OutcomePresent}}, d.Reads)
	require.Equal(t, []Label{{"key", "value", record.ABIV1}}, collected(d.Set))
	require.Same(t, d, ch.Decode(of(alice), nil, copied))
}

// channelSets returns a function that gives the sets of one user in one interval.
func channelSets(t *testing.T) func(section []byte) *Set {
	ch := newTestRegistry(t, nil).NewChannel()
	return func(section []byte) *Set { return ch.Decode(of(alice), nil, section).Set }
}

func TestEqualSetsAreOnePointer(t *testing.T) {
	setOf := channelSets(t)
	set := setOf(v1(kv("a", "1"), kv("b", "2")))
	for name, section := range map[string][]byte{
		"order":     v1(kv("b", "2"), kv("a", "1")),
		"duplicate": v1(kv("a", "1"), kv("a", "3"), kv("b", "2")),
		"loser":     join(v0(kv("a", "4")), v1(kv("a", "1"), kv("b", "2"))),
		"bad block": join(v1(kv("a", "1"), kv("b", "2")), custom(record.ABIV0, record.OutcomeFault)),
		"with link": join(v1(kv("a", "1"), kv("b", "2")), contextRecord{link: linkA, valid: 1}.block()),
	} {
		require.Same(t, set, setOf(section), name)
	}
	for name, section := range map[string][]byte{
		"source":    v0(kv("a", "1"), kv("b", "2")),
		"value":     v1(kv("a", "1"), kv("b", "3")),
		"key":       v1(kv("a", "1"), kv("c", "2")),
		"fewer":     v1(kv("a", "1")),
		"truncated": custom(record.ABIV1, record.OutcomeTruncated, kv("a", "1"), kv("b", "2")),
	} {
		require.NotSame(t, set, setOf(section), name)
	}
}

// That something was cut is part of a user's set, also where no label is left.
func TestChannelTellsCutSetsApart(t *testing.T) {
	r := newTestRegistry(t, func(o *Options) { o.Rules = []Rule{{Key: "capped", Action: CapDistinctValues, Limit: 1}} })
	ch := r.NewChannel()
	decode := func(section []byte) *Set { return ch.Decode(of(alice), nil, section).Set }
	whole, cut := decode(v1(kv("a", "1"))), decode(v1(raw{"a", "1", 1, 2}))
	require.NotSame(t, whole, cut)
	require.False(t, whole.Truncated())
	require.True(t, cut.Truncated())

	require.Equal(t, 1, decode(v1(kv("capped", "1"))).Len())
	empty := decode(v1(kv("capped", "2")))
	require.Zero(t, empty.Len())
	require.True(t, empty.Truncated())
}

func TestNewSet(t *testing.T) {
	s := NewSet(true, Label{"b", "2", record.ABIV1}, Label{"a", "1", record.ABIV0}, Label{"b", "3", record.ABIV0})
	require.Equal(t, []Label{{"a", "1", record.ABIV0}, {"b", "2", record.ABIV1}}, collected(s))
	require.Equal(t, 2, s.Len())
	require.True(t, s.Truncated())
	require.Zero(t, NewSet(false).Len())
}

func TestChannelDoesNotAllocate(t *testing.T) {
	r := newTestRegistry(t, func(o *Options) {
		o.Rules = []Rule{{Key: "key.*.1", Executable: "/usr/**", Action: Drop}, {Key: "*", Action: CapDistinctValues, Limit: 100}}
	})
	ch := r.NewChannel()
	for name, section := range benchSections() {
		for _, u := range []User{alice, bob} {
			want := ch.Decode(of(u), names, section)
			from := of(u)
			require.Zero(t, testing.AllocsPerRun(100, func() {
				d := ch.Decode(from, names, section)
				r.Count(d)
				if d != want {
					panic("another result")
				}
			}), name)
		}
	}
}

// A set seen before costs the result and the remembered section, not the set.
func TestDecodeOfKnownSetAllocatesLittle(t *testing.T) {
	ch := newTestRegistry(t, nil).NewChannel()
	section := contextRecord{link: linkA, valid: 1, attrs: join(attr(0, "a"), attr(1, "b"))}.block()
	from := of(alice)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() { // a new span each time
		for i := record.LabelBlockBytes; ; i++ {
			if section[i]++; section[i] != 0 {
				break
			}
		}
		ch.Decode(from, names, section)
	}), 4.0)
	require.Len(t, ch.accounts[alice].sets, 1)
}

func TestWalkingASetDoesNotAllocate(t *testing.T) {
	set := Decode(nil, v1(kv("a", "1"), kv("b", "2"))).Set
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for l := range set.All() {
			if l.Source != record.ABIV1 {
				panic("another source")
			}
		}
	}))
}

func benchSections() map[string][]byte {
	var ten []raw
	for i := range 10 {
		ten = append(ten, kv(fmt.Sprintf("key.number.%d", i), fmt.Sprintf("a value of usual length %d", i)))
	}
	var attrs []byte
	for i := range 5 {
		attrs = append(attrs, attr(byte(i), "value of an attribute")...)
	}
	return map[string][]byte{
		"none":           nil,
		"v1 no labels":   custom(record.ABIV1, record.OutcomeNone),
		"v1 1 label":     v1(ten[0]),
		"v1 10 labels":   v1(ten...),
		"thread context": contextRecord{link: linkA, valid: 1, attrs: attrs}.block(),
		"four sources":   join(v0(ten...), v1(ten...), v1(ten[:5]...), contextRecord{link: linkA, valid: 1, attrs: attrs}.block()),
	}
}

func BenchmarkChannelKnown(b *testing.B) {
	for name, rules := range map[string][]Rule{
		"no rules": nil, "rules": {{Key: "key.number.1", Action: Drop}},
		"by executable": {{Key: "key.number.1", Executable: "/usr/**", Action: Drop}},
	} {
		b.Run(name, func(b *testing.B) {
			r := newTestRegistry(b, func(o *Options) { o.Rules = rules })
			ch, from, section := r.NewChannel(), of(alice), benchSections()["v1 10 labels"]
			b.ReportAllocs()
			for b.Loop() {
				r.Count(ch.Decode(from, nil, section))
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, section := range benchSections() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Decode(names, section)
			}
		})
	}
}
