package symbol

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil/fuzz"
)

func TestParseMapLine(t *testing.T) {
	for line, want := range map[string]function{
		"7f0000001000 2a main":                  {0x7f0000001000, 0x2a, "main"},
		"0x10 0x20 a b c":                       {0x10, 0x20, "a b c"},
		"10 20 int Foo.bar(java.lang.String)\r": {0x10, 0x20, "int Foo.bar(java.lang.String)"},
		"10 20 a\x00b":                          {0x10, 0x20, "a"},
		"":                                      {}, "10": {}, "10 20": {}, "10 20 ": {}, "10 0 zero": {}, "g 1 x": {}, "1 g x": {}, "-1 1 x": {},
		"10 100000000 large": {}, "ffffffffffffffff 2 wraps": {}, "10 20 \x00": {}, "11111111111111111 1 x": {},
	} {
		start, size, name, ok := parseMapLine([]byte(line))
		require.Equal(t, want.name != "", ok, "%q", line)
		require.Equal(t, want, function{start, uint64(size), string(name)}, "%q", line)
	}
}

func TestMapFrame(t *testing.T) {
	type result struct {
		frame    Frame
		language Language
	}
	for name, want := range map[string]result{
		"py::Foo.bar.<locals>.<lambda>:/app/a b.py": {Frame{Name: "Foo.bar.<locals>.<lambda>", File: "/app/a b.py"}, CPython},
		"py::":                                 {Frame{Name: "py::"}, Native},
		"JS:*fib /app/my file.js:3:13":         {Frame{Name: "fib", File: "/app/my file.js", StartLine: 3}, V8JS},
		"JS:~get size node:internal/x:7:1":     {Frame{Name: "get size", File: "node:internal/x", StartLine: 7}, V8JS},
		"LazyCompile:~ file:///a.mjs:1:2":      {Frame{Name: "(anonymous)", File: "file:///a.mjs", StartLine: 1}, V8JS},
		"Function:^f":                          {Frame{Name: "f"}, V8JS},
		"Script:~ evalmachine.<anonymous>:1:1": {Frame{Name: "(anonymous)", File: "evalmachine.<anonymous>", StartLine: 1}, V8JS},
		"Builtin:ArrayPrototypePush":           {Frame{Name: "Builtin:ArrayPrototypePush"}, V8JS},
		"Function:other":                       {Frame{Name: "Function:other"}, Native},
		"java.lang.String::hashCode":           {Frame{Name: "java.lang.String::hashCode"}, Native},
		"wasm[0]::function[3]":                 {Frame{Name: "wasm[0]::function[3]"}, Native},
		"JS:":                                  {Frame{Name: "JS:"}, Native},
	} {
		frame, language := mapFrame(name, Native)
		require.Equal(t, want, result{frame, language}, name)
	}
	_, language := mapFrame("java.lang.String::hashCode", JVM)
	require.Equal(t, JVM, language)
}

// FuzzPerfMap reads a hostile map in two parts.
func FuzzPerfMap(f *testing.F) {
	seeds := [][]byte{
		[]byte("1000 10 a\n1008 10 JS:*b /x.js:1:2\n900 1000 py::c:/d.py\nffffffffffffff00 ff z\n"),
		[]byte("0x10 0x20 e\n\n10 g h\n12 4 f"),
	}
	fuzz.Run(f, seeds, func(t testing.TB, data []byte) {
		var file growing
		m := newPerfMap(maxMapBytes)
		for _, part := range [][]byte{data[:len(data)/2], data[len(data)/2:]} {
			file.write(string(part))
			var err error
			if m, err = m.update(file.open(), file.now, roomFor()); err != nil {
				t.Fatal(err)
			}
			last := uint64(0)
			for i, e := range m.functions.list {
				if e.start < last || e.size == 0 {
					t.Fatalf("range %d: %+v after %#x", i, e, last)
				}
				last = e.start + uint64(e.size)
				frames, _ := m.lookup(nil, e.start, Native)
				if len(frames) != 1 || !utf8.ValidString(frames[0].Name+frames[0].File) {
					t.Fatalf("%#x: %+v", e.start, frames)
				}
			}
		}
		whole, err := newPerfMap(maxMapBytes).update(file.open(), file.now, roomFor())
		if err != nil || len(whole.functions.list) != len(m.functions.list) {
			t.Fatalf("%d ranges at once, %d in parts", len(whole.functions.list), len(m.functions.list))
		}
	})
}
