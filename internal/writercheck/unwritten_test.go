package writercheck

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fakemem"
)

// The mapping of a process context has its name before anything is written there.
func TestContextBeforeItIsWritten(t *testing.T) {
	header := make([]byte, 64)
	j := contextJudge{t: newTally()}
	j.judge(readPublication(&fakemem.Window{Bytes: header}, 0), 10, 0)
	require.Empty(t, j.t.results)
	written := append([]byte(contextSignature), 2, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 10, 2, 10, 0)
	copy(header, written)
	j.judge(readPublication(&fakemem.Window{Bytes: header}, 0), 10, 0)
	j.end()
	require.Equal(t, uint64(1), j.t.of("process_context/signature").Held)
	require.Zero(t, j.t.of("process_context/signature").Broke)
	require.Zero(t, j.t.of("process_context/timestamp").Broke)

	never := contextJudge{t: newTally()}
	never.judge(readPublication(&fakemem.Window{Bytes: make([]byte, 64)}, 0), 10, 0)
	never.end()
	require.Equal(t, uint64(1), never.t.of("process_context/timestamp").Broke)
}

// A set of as many labels and bytes as readers copy fits, one of more does not.
func TestReaderLimits(t *testing.T) {
	const bytes = record.MaxSlotEnd - record.LabelBlockBytes
	for name, c := range map[string]struct {
		labels, values int
		fits           bool
	}{
		"labels":          {record.MaxLabels, 1, true},
		"too many labels": {record.MaxLabels + 1, 1, false},
		"bytes":           {8, bytes/8 - record.RawLabelBytes - 2, true},
		"too many bytes":  {8, bytes/8 - record.RawLabelBytes - 1, false},
		"a value":         {1, record.MaxLabelValueBytes, true},
		"a long value":    {1, record.MaxLabelValueBytes + 1, false},
	} {
		const text = 0x4000
		mem := &fakemem.Window{Bytes: make([]byte, 0x8000)}
		word := func(at, value int) { binary.LittleEndian.PutUint64(mem.Bytes[at:], uint64(value)) }
		word(0, setBytes)
		word(wordBytes, c.labels)
		for i := range c.labels {
			copy(mem.Bytes[text+2*i:], fmt.Sprintf("%02d", i))
			for j, value := range []int{2, text + 2*i, c.values, text} {
				word(setBytes+labelBytes*i+wordBytes*j, value)
			}
		}
		tally := newTally()
		readLabelSet(mem, 0).judge(tally, V1)
		require.Equal(t, c.fits, tally.of(V1.rule(ruleLimits)).Broke == 0, name)
		require.Zero(t, tally.of(V1.rule(ruleUnique)).Broke, name)
	}
}
