package labels

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

func TestCacheSharesResults(t *testing.T) {
	c := NewCache(1 << 20)
	section := join(v0(kv("a", "1")), v1(kv("b", "2")))
	d := c.Decode(nil, section)
	require.Same(t, d, c.Decode(nil, append([]byte(nil), section...)))
	require.NotSame(t, d, c.Decode(names, section), "the key map is part of the key")
	require.Same(t, d.Set, c.Decode(names, section).Set)
}

func TestCacheKeepsNothingOfTheSection(t *testing.T) {
	c := NewCache(1 << 20)
	section := v1(kv("key", "value"))
	d := c.Decode(nil, section)
	copied := append([]byte(nil), section...)
	clear(section)
	c.Decode(nil, custom(record.ABIV0, record.OutcomeFault)) // uses the same scratch memory
	require.Equal(t, []Read{{record.ABIV1, record.OutcomePresent}}, d.Reads)
	require.Equal(t, []Label{{"key", "value", record.ABIV1}}, collected(d.Set))
	require.Same(t, d, c.Decode(nil, copied))
}

func TestEqualSetsAreOnePointer(t *testing.T) {
	c := NewCache(1 << 20)
	set := c.Decode(nil, v1(kv("a", "1"), kv("b", "2"))).Set
	for name, section := range map[string][]byte{
		"order":     v1(kv("b", "2"), kv("a", "1")),
		"duplicate": v1(kv("a", "1"), kv("a", "3"), kv("b", "2")),
		"loser":     join(v0(kv("a", "4")), v1(kv("a", "1"), kv("b", "2"))),
		"bad block": join(v1(kv("a", "1"), kv("b", "2")), custom(record.ABIV0, record.OutcomeFault)),
		"with link": join(v1(kv("a", "1"), kv("b", "2")), contextRecord{link: linkA, valid: 1}.block()),
	} {
		require.Same(t, set, c.Decode(nil, section).Set, name)
	}
	for name, section := range map[string][]byte{
		"source":    v0(kv("a", "1"), kv("b", "2")),
		"value":     v1(kv("a", "1"), kv("b", "3")),
		"key":       v1(kv("a", "1"), kv("c", "2")),
		"fewer":     v1(kv("a", "1")),
		"truncated": custom(record.ABIV1, record.OutcomeTruncated, kv("a", "1"), kv("b", "2")),
	} {
		require.NotSame(t, set, c.Decode(nil, section).Set, name)
	}
}

// A full cache stays right and stops growing, except by the sets it gives out.
func TestCacheFull(t *testing.T) {
	c := NewCache(10_000)
	for i := 0; !c.Full(); i++ {
		require.Less(t, i, 1000, "never full")
		c.Decode(nil, v1(kv("a", fmt.Sprint(i))))
	}
	require.LessOrEqual(t, c.Bytes(), 10_000+1_000)
	known := c.Decode(nil, v1(kv("a", "0")))
	require.Same(t, known, c.Decode(nil, v1(kv("a", "0"))))

	sections := len(c.decoded)
	fresh := c.Decode(nil, v1(kv("b", "fresh")))
	require.Equal(t, []Label{{"b", "fresh", record.ABIV1}}, collected(fresh.Set))
	require.Len(t, c.decoded, sections)
	require.Same(t, fresh.Set, c.Decode(nil, v1(kv("b", "fresh"))).Set, "sets are unique even now")
	bytes := c.Bytes()
	for i := range 100 {
		c.Decode(nil, join(v1(kv("b", "fresh")), v0(kv("b", fmt.Sprint(i)))))
	}
	require.Equal(t, bytes, c.Bytes())

	c.Reset()
	require.False(t, c.Full())
	require.Zero(t, c.Bytes())
	require.NotSame(t, known, c.Decode(nil, v1(kv("a", "0"))))
	require.Equal(t, []Label{{"a", "0", record.ABIV1}}, collected(known.Set), "old results stay valid")
}

func TestNewSet(t *testing.T) {
	s := NewSet(true, Label{"b", "2", record.ABIV1}, Label{"a", "1", record.ABIV0}, Label{"b", "3", record.ABIV0})
	require.Equal(t, []Label{{"a", "1", record.ABIV0}, {"b", "2", record.ABIV1}}, collected(s))
	require.Equal(t, 2, s.Len())
	require.True(t, s.Truncated())
	require.Zero(t, NewSet(false).Len())
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	c := NewCache(1 << 20)
	for name, section := range benchSections() {
		want := c.Decode(names, section)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if c.Decode(names, section) != want {
				panic("another result")
			}
		}), name)
	}
	set := c.Decode(nil, v1(kv("a", "1"), kv("b", "2"))).Set
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for l := range set.All() {
			if l.Source != record.ABIV1 {
				panic("another source")
			}
		}
	}), "walking a set")
}

// A set seen before costs the result and the remembered section, not the set.
func TestDecodeOfKnownSetAllocatesLittle(t *testing.T) {
	c := NewCache(1 << 30)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, decodeOtherSpans(c)), 4.0)
	require.Len(t, c.sets, 2)
}

// decodeOtherSpans returns a function that decodes a new span each time.
func decodeOtherSpans(c *Cache) func() {
	section := contextRecord{link: linkA, valid: 1, attrs: join(attr(0, "a"), attr(1, "b"))}.block()
	return func() {
		for i := record.LabelBlockBytes; ; i++ {
			if section[i]++; section[i] != 0 {
				break
			}
		}
		c.Decode(names, section)
	}
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

func BenchmarkDecodeKnown(b *testing.B) {
	for name, section := range benchSections() {
		b.Run(name, func(b *testing.B) {
			c := NewCache(1 << 20)
			b.ReportAllocs()
			for b.Loop() {
				c.Decode(names, section)
			}
		})
	}
}

func BenchmarkDecodeNew(b *testing.B) {
	for name, section := range benchSections() {
		b.Run(name, func(b *testing.B) {
			c := NewCache(0) // always full: decodes each time
			b.ReportAllocs()
			for b.Loop() {
				c.Decode(names, section)
			}
		})
	}
}
