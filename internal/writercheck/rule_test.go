package writercheck

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil/fakemem"
)

// A rule tells all that its reader needs, and has a name of its own.
func TestRules(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rules() {
		require.False(t, seen[r.ID], r.ID)
		seen[r.ID] = true
		require.True(t, strings.HasPrefix(r.ID, string(r.Format)+"/"), r.ID)
		for _, text := range []string{r.Title, r.Document, r.Section, r.Remedy} {
			require.NotEmpty(t, text, r.ID)
		}
	}
}

// An object that a collector is moving when its thread is stopped breaks no rule.
func TestMoved(t *testing.T) {
	tally := newTally()
	id := NodeJS.rule(ruleRecord)
	verdict := func() Verdict {
		for _, r := range tally.all([]Format{NodeJS}) {
			if r.ID == id {
				return r.Verdict
			}
		}
		return ""
	}
	for range 2 * movedShare {
		tally.check(id, true, "")
	}
	tally.check(id, false, "an async context of type 268")
	require.Equal(t, Holds, verdict())
	tally.check(id, false, "an async context of type 268")
	require.Equal(t, Holds, verdict())
	tally.check(id, false, "an async context of type 268")
	require.Equal(t, Broken, verdict())
}

func TestTally(t *testing.T) {
	tally := newTally()
	id := V1.rule(ruleSet)
	tally.note(id, "why")
	verdict := func() (r Result) {
		for _, r := range tally.all([]Format{V1}) {
			if r.ID == id {
				return r
			}
		}
		t.Fatal(id)
		return r
	}
	require.Equal(t, NotSeen, verdict().Verdict)
	require.Equal(t, []string{"why"}, verdict().Observed)
	tally.check(id, true, "%d", 1)
	require.Equal(t, Holds, verdict().Verdict)
	for i := range 9 {
		tally.check(id, false, "%d%s", i%5, strings.Repeat("é", maxObservedBytes))
	}
	r := verdict()
	require.Equal(t, Broken, r.Verdict)
	require.EqualValues(t, 1, r.Held)
	require.EqualValues(t, 9, r.Broke)
	require.Len(t, r.Observed, maxObserved)
	require.LessOrEqual(t, len(r.Observed[0]), maxObservedBytes+len("…"))

	require.Empty(t, tally.all(nil))
	require.Equal(t, NotSeen, (&Report{}).Verdict())
	require.Equal(t, NotSeen, (&Report{Reads: Reads{Published: 1}}).Verdict(), "of no format")
	require.Equal(t, Holds, (&Report{Formats: []Format{ProcessContext}, Reads: Reads{Contexts: 1}}).Verdict())
	require.Equal(t, NotSeen, (&Report{Formats: []Format{V1, ProcessContext}, Reads: Reads{Contexts: 1}}).Verdict())
}

// A count beyond what is readable is none that the storage has, also where it begins with as much as is looked at.
func TestCountBeyondStorage(t *testing.T) {
	for count, good := range map[uint64]bool{1 << 40: false, 1 << 62: false, 600: true, 601: false} {
		memory := make([]byte, 16+600*labelBytes)
		binary.LittleEndian.PutUint64(memory, 16) // storage
		binary.LittleEndian.PutUint64(memory[8:], count)
		tally := newTally()
		_, ok := readLabelSet(&fakemem.Window{Bytes: memory}, 0).judge(tally, V1)
		require.Equal(t, good, ok, "%d", count)
	}
}

// Where no thread was read because no label source can be, the reason is that one's.
func TestWhyOfSources(t *testing.T) {
	r := &Report{Formats: []Format{V1}}
	require.Equal(t, "no thread could be read", r.Why())
	r.inactive = "not_relocated: bound lazily"
	require.Contains(t, r.Why(), r.inactive)
}
