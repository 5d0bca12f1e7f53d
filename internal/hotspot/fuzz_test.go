package hotspot

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fakemem"
)

func FuzzLines(f *testing.F) {
	f.Add([]byte{7, 3, 42, 0xff, 200, 0, 200, 0, 0}, 12, false)
	f.Add([]byte{7, 3, 42, 0xff, 201, 1, 201, 1, 0}, 300, true)
	f.Fuzz(func(t *testing.T, table []byte, bytecode int, newer bool) {
		s := stream{b: table}
		if newer {
			s.excess = 1
		}
		lines := decodeLines(s)
		require.LessOrEqual(t, len(lines), maxLines)
		require.GreaterOrEqual(t, lineOf(lines, bytecode), 0)
	})
}

// Whatever lies in the place of an object: there is an end, within bounds, and names are text.
func FuzzRead(f *testing.F) {
	for _, version := range versions {
		j := newJVM(f, version, "")
		p := j.open(f)
		method := j.method(p, "shop/Cart", "add", "Cart.java", 20, lines(p))
		scopes := append([]byte{0}, numbers(p, 0, 1, 1)...)
		code := j.nmethod(p, nameCompiled, method, []uint64{method}, scopes, []part{{16, 1}})
		f.Add(j.bytes, code, uint32(16), version == version25)
		f.Add(j.bytes, method|record.HotSpotMethod, uint32(3), version == version25)
	}
	older, newer := newJVM(f, version17, "").open(f), newJVM(f, version25, "").open(f)
	f.Fuzz(func(t *testing.T, memory []byte, object uint64, position uint32, recent bool) {
		p := older
		if recent {
			p = newer
		}
		for _, mem := range []langruntime.Memory{fakemem.Anywhere(memory), &image{bytes: memory}} {
			r := &reader{mem: mem}
			cookie := p.blob(r, object).cookie
			if object&objectMask == record.HotSpotMethod {
				h := p.head(r, object&^objectMask)
				cookie = h.cookie
			}
			fn, err := p.Read(mem, object, cookie)
			if err != nil {
				require.ErrorIs(t, err, langruntime.ErrGone)
				continue
			}
			frames := fn.Frames(nil, position)
			require.NotEmpty(t, frames)
			require.LessOrEqual(t, len(frames), maxInlined+1)
			for _, frame := range frames {
				require.True(t, utf8.ValidString(frame.Name) && utf8.ValidString(frame.File))
				require.LessOrEqual(t, len(frame.Name), 8*maxNameBytes)
			}
			require.LessOrEqual(t, fn.Bytes(), 2*maxMethodBytes+12*maxScopes+maxPCBytes)
		}
	})
}

// Whatever a libjvm says of itself: there is an end, and what the sampling programs get is in bounds.
func FuzzOpen(f *testing.F) {
	for _, version := range versions {
		j := newJVM(f, version, "")
		f.Add(j.bytes, j.library.symbols[0]-imageBase, true)
	}
	f.Fuzz(func(t *testing.T, memory []byte, first uint64, whole bool) {
		l := &Library{}
		for i := range l.symbols {
			l.symbols[i] = imageBase + first + uint64(16*i)
		}
		var mem langruntime.Memory = &image{bytes: memory}
		if !whole {
			mem = fakemem.Anywhere(memory)
		}
		p, err := l.Open(mem, 0)
		if err != nil {
			return
		}
		r := p.Record().HotSpot
		require.LessOrEqual(t, r.Low, r.High)
		require.LessOrEqual(t, int(r.SegmentShift), maxSegmentShift)
		for _, offset := range []uint16{r.BlobName, r.BlobSize, r.BlobCode, r.Method, r.CompileID, r.VerifiedEntry, r.OrigPC} {
			require.Less(t, int(offset), record.HotSpotBlobBytes)
		}
	})
}
