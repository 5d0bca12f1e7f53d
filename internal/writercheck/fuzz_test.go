package writercheck

import (
	"encoding/binary"
	"testing"

	"github.com/customlabels/otelcol-customlabels/internal/testutil/fakemem"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fuzz"
)

// FuzzPublished has the judges read what is published at some addresses of hostile memory.
func FuzzPublished(f *testing.F) {
	set := make([]byte, 128)
	binary.LittleEndian.PutUint64(set, 16) // storage
	binary.LittleEndian.PutUint64(set[8:], 3)
	record := make([]byte, 64)
	record[recordValid], record[recordSize] = 1, 8
	context := append([]byte(contextSignature), 2, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 10, 2, 10, 0)
	fuzz.Run(f, [][]byte{set, record, context}, func(t testing.TB, data []byte) {
		tally := newTally()
		mem := &fakemem.Window{Bytes: data}
		for _, format := range []Format{V0, V1} {
			readLabelSet(mem, 0).judge(tally, format)
		}
		r := readContextRecord(mem, 0)
		r.judge(tally, ThreadContext)
		r.indexes(tally, ThreadContext, []string{"tenant"})
		j := contextJudge{t: tally}
		j.judge(readPublication(mem, 0), 10, 0)
		j.end()
		for _, id := range tally.all([]Format{V0, V1, ThreadContext, ProcessContext}) {
			if id.Held+id.Broke > uint64(2+len(data)) || len(id.Observed) > maxObserved {
				t.Fatalf("%+v", id)
			}
			delete(tally.results, id.ID)
		}
		if len(tally.results) > 0 {
			t.Fatalf("no such rules: %v", tally.results)
		}
	})
}
