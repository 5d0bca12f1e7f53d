package symbol

import (
	"debug/elf"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type function struct {
	start, size uint64
	name        string
}

func tableOf(functions ...function) *Table {
	t := &Table{}
	var all entries
	for _, f := range functions {
		all.addFunction(&elffile.Function{Name: []byte(f.name), Value: f.start, Size: f.size}, 1<<20)
	}
	t.compact = compactAll(t, &all)
	return t
}

func TestLookup(t *testing.T) {
	table := tableOf(
		function{0x3000, 0x100, "last"},
		function{0x1000, 0x10, "first"},
		function{0x1100, 0, "assembly"},
		function{0x1180, 0x10, "after"},
		function{0x2000, 0x100, "outer"}, function{0x2010, 0x10, "inner"}, function{0x2030, 0, "label"},
		function{0x2100, 0, "unsized"},
		function{0xffffffffffffff00, 0xff, "top"},
	)
	require.Equal(t, 9, table.Len())
	for vaddr, want := range map[uint64]string{
		0: "", 0xfff: "", 0x1000: "first", 0x100f: "first", 0x1010: "", 0x10ff: "",
		0x1100: "assembly", 0x117f: "assembly", 0x1180: "after", 0x1190: "",
		0x2000: "outer", 0x200f: "outer", 0x2010: "inner", 0x201f: "inner", 0x2020: "outer",
		0x2030: "label", 0x20ff: "label", 0x2100: "unsized",
		0x3000: "last", 0x3100: "", 0xffffffffffffff00: "top", 0xffffffffffffffff: "",
	} {
		name, ok := table.Lookup(vaddr)
		require.Equal(t, want != "", ok, "%#x", vaddr)
		require.Equal(t, want, name, "%#x", vaddr)
	}
	_, ok := tableOf(function{0x1000, 0, "unsized"}).Lookup(0x1000 + maxUnsizedBytes)
	require.False(t, ok)
	_, ok = tableOf().Lookup(0)
	require.False(t, ok)
}

// Linkage tables have no symbols; what lies before them, the end of .init, has one without a
// size.
func TestLinkageHasNoName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(path+".c", []byte(`#include <stdio.h>
int main(int n, char **v) { return puts(v[n - 1]); }`), 0o600))
	for _, link := range [][]string{{"-Wl,-z,lazy"}, {"-static"}} {
		out, err := exec.Command("gcc", append(link, "-O2", "-o", path, path+".c")...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		for _, strip := range []bool{false, true} {
			if strip {
				out, err = exec.Command("objcopy", "--only-keep-debug", path, path+".debug").CombinedOutput()
				require.NoError(t, err, "%s", out)
				path += ".debug"
			}
			f, e := open(t, path)
			defer f.Close()
			table, err := newTable(e, 1<<20)
			require.True(t, err == nil || strip, err) // debug files have no dynamic symbols
			sections, err := elf.NewFile(f)
			require.NoError(t, err)
			init, linkage := sections.Section(".init"), sections.Section(".plt")
			require.NotNil(t, linkage)
			name, _ := table.Lookup(init.Addr + init.Size - 1)
			require.Equal(t, "_init", name)
			for at := linkage.Addr; at < linkage.Addr+linkage.Size; at++ {
				name, ok := table.Lookup(at)
				require.False(t, ok, "%#x: %s", at, name)
			}
		}
		path = strings.TrimSuffix(path, ".debug")
	}
}

// The size that a function may have, at most.
func TestUnsizedRoom(t *testing.T) {
	for room, end := range map[uint64]uint64{0: maxUnsizedBytes, 1: 1, 0x18: 0x18, maxUnsizedBytes + 1: maxUnsizedBytes, math.MaxUint64: maxUnsizedBytes} {
		table := &Table{}
		var all entries
		require.True(t, all.addFunction(&elffile.Function{Name: []byte("f"), Value: 0x1000, Room: room}, 1<<20))
		table.compact = compactAll(table, &all)
		_, ok := table.Lookup(0x1000 + end - 1)
		require.True(t, ok, "%#x", room)
		_, ok = table.Lookup(0x1000 + end)
		require.False(t, ok, "%#x", room)
	}
}

// Of a file that could not be read to its end, a function without a size may be another one that is
// missing, but for its first address.
func TestUnsizedIncomplete(t *testing.T) {
	for _, err := range []error{nil, io.ErrUnexpectedEOF} {
		fs := &functions{table: tableOf()}
		l := loader{src: &opener{}, tables: newRoom(tableLimits()), maxBytes: 1 << 20}
		_, got := l.fill(fs, fs, func(add func(elffile.Function) bool) error {
			add(elffile.Function{Value: 0x1000, Name: []byte("assembly")})
			return err
		})
		require.Equal(t, err, got)
		_, ok := fs.table.Lookup(0x1000)
		require.True(t, ok)
		_, ok = fs.table.Lookup(0x1001)
		require.Equal(t, err == nil, ok)
		require.False(t, fs.table.Truncated())
	}
}

func TestAliases(t *testing.T) {
	for want, aliases := range map[string][]function{
		"malloc": {{1, 5, "__libc_malloc"}, {1, 5, "malloc"}, {1, 5, "__malloc"}},
		"sized":  {{1, 0, "a"}, {1, 5, "sized"}},
		"ab":     {{1, 5, "bb"}, {1, 5, "ab"}, {1, 5, "aaa"}},
	} {
		for range 2 {
			table := tableOf(aliases...)
			require.Equal(t, 1, table.Len())
			name, _ := table.Lookup(1)
			require.Equal(t, want, name)
			aliases[0], aliases[1] = aliases[1], aliases[0]
		}
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"main":                                   "main",
		"_ZN3foo3barEv":                          "foo::bar()",
		"_ZN3foo3barEv.cold":                     "foo::bar() [clone .cold]",
		"_ZN4core3fmt5write17h0123456789abcdefE": "core::fmt::write",
		"_RNvC6_123foo3bar":                      "123foo::bar",
		"_RNvMNtCs2OpA4fNwd7R_1r5innerINtB2_1SmE4busyB4_":                           "<r::inner::S<u32>>::busy",
		"_ZN4core3fmt5write17h0123456789abcdefE.llvm.123":                           "core::fmt::write",
		"_ZN3std3sys9backtrace28__rust_begin_short_backtrace17h0123456789abcdefE":   "std::sys::backtrace::__rust_begin_short_backtrace",
		"_ZN3std2io5stdio6_print17h0123456789abcdefE.llvm.123":                      "std::io::stdio::_print",
		"_ZN44_$LT$$RF$T$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE": "<&T as core::fmt::Display>::fmt",
		"_ZN12_GLOBAL__N_117handle_connectionEi":                                    "(anonymous namespace)::handle_connection(int)",
		"_ZN3foo4_bar17hello_world_12345Ev":                                         "foo::_bar::hello_world_12345()",
		"_ZN3foo4_bar17h0000000000000000Ev":                                         "foo::_bar::h0000000000000000()",
		"_ZN3foo4_bar17h0123456789abcdefEi":                                         "foo::_bar::h0123456789abcdef(int)",
		"_ZN2_R3fooEv":                                                              "_R::foo()",
		"_ZN3foo4_barE":                                                             "foo::_bar",
		"_ZN3foo99_bar17h0123456789abcdefE":                                         "_ZN3foo99_bar17h0123456789abcdefE",
		"_ZN3foo4_bar3x17h0123456789abcdefE":                                        "_ZN3foo4_bar3x17h0123456789abcdefE",
		"_ZN_17h0123456789abcdefE":                                                  "_ZN_17h0123456789abcdefE",
		"_ZN3foo4_bar17h0123456789abcdef":                                           "_ZN3foo4_bar17h0123456789abcdef",
		"_Znonsense":                                                                "_Znonsense",
		"_R":                                                                        "_R",
		"\xff\xfe":                                                                  "\uFFFD",
	} {
		got, ok := tableOf(function{1, 1, name}).Lookup(1)
		require.True(t, ok)
		require.Equal(t, want, got)
	}
}

// TestNameBomb demangles a short name that stands for an enormous one.
func TestNameBomb(t *testing.T) {
	name := "_Z1fSt4pairIiiE"
	for i := range 30 {
		c := string("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i])
		name += "St4pairIS" + c + "_S" + c + "_E"
	}
	got, _ := tableOf(function{1, 1, name}).Lookup(1)
	require.LessOrEqual(t, len(got), 2<<maxDemangledBits)
}

func TestTruncated(t *testing.T) {
	path := build(t)
	f, e := open(t, path)
	defer f.Close()
	whole, err := newTable(e, 1<<20)
	require.NoError(t, err)
	require.False(t, whole.Truncated())
	cut, err := newTable(e, 200)
	require.NoError(t, err)
	require.True(t, cut.Truncated())
	require.LessOrEqual(t, cut.Bytes(), 200)
	require.Less(t, cut.Len(), whole.Len())

	cut.compact = tableOf(function{0x1000, 0, "assembly"}).compact
	_, ok := cut.Lookup(0x1001)
	require.False(t, ok, "there may be a function in between that is missing")
	_, ok = cut.Lookup(0x1000)
	require.True(t, ok)
}

// build compiles a library; flags may strip it.
func build(t testing.TB, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	src, out := filepath.Join(dir, "p.c"), filepath.Join(dir, "p.so")
	require.NoError(t, os.WriteFile(src, []byte(`
static __attribute__((noinline)) int hidden(int x) { volatile int y = x; return y * 3; }
int visible(int x) { return hidden(x) + 1; }
`), 0o644))
	testutil.Compile(t, out, "gcc", append([]string{"-O1", "-shared", "-fPIC", src}, flags...)...)
	return out
}

func open(t testing.TB, path string) (*os.File, *elffile.File) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	st, err := f.Stat()
	require.NoError(t, err)
	e, err := elffile.New(f, st.Size())
	require.NoError(t, err)
	return f, e
}

// TestFile compares with what debug/elf finds, in a whole and in a stripped file.
func TestFile(t *testing.T) {
	f, e := open(t, build(t))
	defer f.Close()
	table, err := newTable(e, 1<<20)
	require.NoError(t, err)
	reference, err := elf.NewFile(f)
	require.NoError(t, err)
	symbols, err := reference.Symbols()
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, s := range symbols {
		if s.Name != "hidden" && s.Name != "visible" {
			continue
		}
		for _, at := range []uint64{0, 1, s.Size - 1} {
			name, ok := table.Lookup(s.Value + at)
			require.True(t, ok)
			require.Equal(t, s.Name, name)
		}
		seen[s.Name] = true
	}
	require.Len(t, seen, 2)

	f, e = open(t, build(t, "-s"))
	defer f.Close()
	table, err = newTable(e, 1<<20)
	require.NoError(t, err)
	require.NotZero(t, table.Len())
	dynamic, err := elf.NewFile(f)
	require.NoError(t, err)
	symbols, err = dynamic.DynamicSymbols()
	require.NoError(t, err)
	for _, s := range symbols {
		if s.Name == "visible" {
			name, ok := table.Lookup(s.Value)
			require.True(t, ok)
			require.Equal(t, "visible", name)
			before, ok := table.Lookup(s.Value - 1)
			require.False(t, ok, "hidden has no symbol: %v", before)
		}
	}
}

func TestLookupAllocates(t *testing.T) {
	table := tableOf(function{1, 1, "_ZN3foo3barEv"})
	table.Lookup(1)
	require.Zero(t, testing.AllocsPerRun(100, func() { table.Lookup(1) }))
}
