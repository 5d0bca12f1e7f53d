package symbol

import (
	"bytes"
	"path"
	"testing"

	"github.com/customlabels/otelcol-customlabels/internal/testutil/fuzz"
)

// FuzzUnpack unpacks hostile .gnu_debugdata.
func FuzzUnpack(f *testing.F) {
	const most = 64 << 10
	data := bytes.Repeat([]byte("abcdefgh"), 200)
	seeds := [][]byte{
		pack(f, data), pack(f, nil), pack(f, data, "--block-size=400", "-C", "crc32"), pack(f, data, "-C", "none"),
		streamOf(chunksOf(usualProperties, resets(), 3)), streamOf(chunksOf(usualProperties, plain(), 3)),
	}
	fuzz.Run(f, seeds, func(t testing.TB, packed []byte) {
		got, free, err := unpack(packed, most, goOn)
		defer free()
		if err == nil && len(got) > most {
			t.Fatalf("%d bytes", len(got))
		}
	})
}

// FuzzDebugLink parses a hostile .gnu_debuglink.
func FuzzDebugLink(f *testing.F) {
	fuzz.Run(f, [][]byte{[]byte("abc\x00\x01\x02\x03\x04"), []byte("..\x00\x00\x01\x02\x03\x04")}, func(t testing.TB, b []byte) {
		name, _, ok := parseDebugLink(b)
		if ok && (name == "" || path.Join("/dir", name) != "/dir/"+name) {
			t.Fatalf("%q", name)
		}
	})
}
