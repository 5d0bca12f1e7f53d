package labels

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Where a source could not be read that goes before another, what the other says may be overridden: the set is marked.
func TestUnreadableSource(t *testing.T) {
	for _, tc := range []struct {
		section   []byte
		truncated bool
	}{
		{join(v0(kv("k", "old")), custom(record.ABIV1, record.OutcomeFault)), true},
		{join(custom(record.ABIV1, record.OutcomeUpdating), custom(record.ABIGo, record.OutcomePresent, kv("k", "old"))), true},
		{join(v0(kv("k", "old")), contextRecord{valid: 2}.block()), true},
		{join(custom(record.ABIV1, record.OutcomeFault), v1(kv("k", "old"))), true},
		{join(v1(kv("k", "new")), custom(record.ABIV1, record.OutcomeFault)), false},
		{join(v1(kv("k", "new")), custom(record.ABIV0, record.OutcomeFault)), false},
		{join(v0(kv("k", "old")), custom(record.ABIV1, record.OutcomeNone)), false},
		{join(v0(kv("k", "old")), custom(record.ABIV1, record.OutcomeNotAllocated)), false},
	} {
		d := Decode(nil, tc.section)
		require.Equal(t, 1, len(collected(d.Set)))
		require.Equal(t, tc.truncated, d.Set.Truncated(), d.Reads)
	}
	d := Decode(nil, custom(record.ABIV1, record.OutcomeFault))
	require.False(t, d.Set.Truncated(), "no label, none that is another's")

	linked, updating := contextRecord{link: linkA, valid: 1}.block(), contextRecord{}.block()
	d = Decode(nil, join(updating, linked))
	require.Equal(t, linkA, d.Link)
	require.True(t, d.Set.Truncated(), "the link may be another's")
	for name, section := range map[string][]byte{
		"it goes before":      join(linked, updating),
		"nothing is there":    join(updating, contextRecord{valid: 1}.block()),
		"a source of no link": join(custom(record.ABIV1, record.OutcomeFault), linked),
	} {
		require.False(t, Decode(nil, section).Set.Truncated(), name)
	}
}
