package symbol

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

const kallsyms = `0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000100 t do_something
ffffffff81000100 T something
ffffffff81000200 d data
ffffffff81000300 W weak
ffffffff81000400 T _etext
ffffffff81000500 D more_data
ffffffffc0001000 t module_function	[ext4]
ffffffffc0001100 t _RNvC6_123foo3bar	[rust_mod]
ffffffffa0000010 t bpf_prog_0123456789abcdef_sample	[bpf]
`

// kernelOf makes a kernel from a fake /proc without /proc/modules; write changes its symbols.
func kernelOf(t *testing.T, text string) (k *Kernel, write func(string), err error) {
	root := t.TempDir()
	write = func(text string) { writeProc(t, root, "kallsyms", text) }
	write(text)
	k, err = NewKernel(procfs.FS{Root: root})
	return k, write, err
}

func writeProc(t *testing.T, root, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
}

func TestKernel(t *testing.T) {
	k, _, err := kernelOf(t, kallsyms)
	require.NoError(t, err)
	for addr, want := range map[uint64][2]string{
		0:                  {"", ""},
		0xffffffff80ffffff: {"", ""},
		0xffffffff81000000: {"_stext", ""},
		0xffffffff81000100: {"something", ""},
		0xffffffff810002ff: {"something", ""},
		0xffffffff81000300: {"weak", ""},
		0xffffffff81000400: {"", ""},
		0xffffffff81000600: {"", ""},
		0xffffffffa0000011: {"bpf_prog_0123456789abcdef_sample", "bpf"},
		0xffffffffc00010ff: {"module_function", "ext4"},
		0xffffffffc0001100: {"123foo::bar", "rust_mod"},
		0xffffffffc00010ff + maxModuleFunctionBytes: {"123foo::bar", "rust_mod"},
		0xffffffffc0001100 + maxModuleFunctionBytes: {"", ""},
		0xffffffffa0000010 + maxModuleFunctionBytes: {"", ""},
	} {
		fn, module, ok := k.Lookup(addr)
		require.Equal(t, want[0] != "", ok, "%#x", addr)
		require.Equal(t, want, [2]string{fn, module}, "%#x", addr)
	}
	k.Lookup(0xffffffff81000100)
	require.Zero(t, testing.AllocsPerRun(10, func() { k.Lookup(0xffffffff81000100) }))
}

func TestKernelHidden(t *testing.T) {
	_, _, err := kernelOf(t, "0000000000000000 T _stext\n0000000000000000 t x\t[mod]\n")
	require.ErrorIs(t, err, ErrKernelHidden)
	require.ErrorContains(t, err, "CAP_SYSLOG")
	_, err = NewKernel(procfs.FS{Root: t.TempDir()})
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, bad := range []string{"x", "ffffffff81000000", "ffffffff81000000 T", "g T x", strings.Repeat("x", 1<<20)} {
		_, _, err := kernelOf(t, bad+"\n")
		require.Error(t, err, "%.40q", bad)
	}
}

// TestKernelRefresh loads a module after the symbols were read.
func TestKernelRefresh(t *testing.T) {
	k, write, err := kernelOf(t, kallsyms)
	require.NoError(t, err)
	now := k.readAt
	k.now = func() time.Time { return now }
	const addr = 0xffffffffd0000004
	write(kallsyms + "ffffffffd0000000 t late\t[late_module]\n")
	now = now.Add(2 * refreshGap)
	require.NoError(t, k.Refresh())
	_, _, ok := k.Lookup(addr)
	require.False(t, ok, "nothing was missed, so nothing was read")
	require.NoError(t, k.Refresh())
	fn, module, ok := k.Lookup(addr)
	require.True(t, ok)
	require.Equal(t, "late", fn)
	require.Equal(t, "late_module", module)

	k.Lookup(1)
	write("0 T hidden\n")
	require.NoError(t, k.Refresh(), "not so soon")
	now = now.Add(refreshGap)
	require.ErrorIs(t, k.Refresh(), ErrKernelHidden)
	require.NoError(t, k.Refresh(), "not at once again")
	_, _, ok = k.Lookup(addr)
	require.True(t, ok, "what is known stays")
}

// TestKernelRefreshBacksOff looks up an address that no symbol ever holds.
func TestKernelRefreshBacksOff(t *testing.T) {
	k, write, err := kernelOf(t, kallsyms)
	require.NoError(t, err)
	now := k.readAt
	k.now = func() time.Time { return now }
	readings := 0
	for last := k.readAt; now.Sub(last) < 24*time.Hour; now = now.Add(refreshGap) {
		k.Lookup(1)
		before := k.readAt
		require.NoError(t, k.Refresh())
		if k.readAt != before {
			readings++
		}
	}
	require.Less(t, readings, 32)
	require.Greater(t, readings, 24)

	write(kallsyms + "ffffffffd0000000 t late\t[late_module]\n")
	now = now.Add(maxRefreshGap)
	k.Lookup(1)
	require.NoError(t, k.Refresh())
	require.Equal(t, refreshGap, k.gap, "something has changed")
}

// Names that are kept ready count, and have a bound.
func TestKernelNamesBounded(t *testing.T) {
	const names = 2000
	text := "ffffffff80000000 T _stext\n"
	for i := range names {
		text += fmt.Sprintf("ffffffff81%06x t _Z5f%04d", 16*i, i) + strings.Repeat("x", cheapBytes-16) + "\n"
	}
	k, _, err := kernelOf(t, text)
	require.NoError(t, err)
	before, most, dropped := k.Bytes(), 0, false
	for i := range uint64(names) {
		last := k.Bytes()
		fn, _, ok := k.Lookup(0xffffffff81000000 + 16*i)
		require.True(t, ok)
		require.Contains(t, fn, "(long long, ")
		now := k.Bytes()
		if now > last {
			require.GreaterOrEqual(t, now-last, len(fn))
		}
		most, dropped = max(most, now-before), dropped || now <= last
	}
	require.True(t, dropped)
	require.LessOrEqual(t, most, maxMemoBytes)
	require.Greater(t, most, maxMemoBytes/2)
	require.NoError(t, k.read(nil))
	require.Equal(t, before, k.Bytes())
}

// TestKernelReal needs to see the symbols of the kernel that it runs on.
func TestKernelReal(t *testing.T) {
	if os.Getuid() != 0 {
		_, err := NewKernel(procfs.FS{})
		require.ErrorIs(t, err, ErrKernelHidden)
		return
	}
	k, err := NewKernel(procfs.FS{})
	require.NoError(t, err)
	for line := range strings.Lines(mustRead(t, "/proc/kallsyms")) {
		if words := strings.Fields(line); len(words) == 3 && words[2] == "schedule" {
			var addr uint64
			for _, c := range words[0] {
				addr = addr<<4 | uint64(strings.IndexRune("0123456789abcdef", c))
			}
			fn, module, ok := k.Lookup(addr + 4)
			require.True(t, ok)
			require.Equal(t, "schedule", fn)
			require.Empty(t, module)
			return
		}
	}
	require.Fail(t, "no schedule in kallsyms")
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func FuzzReadKernel(f *testing.F) {
	f.Add(kallsyms)
	f.Fuzz(func(t *testing.T, text string) {
		k, err := readKernel(strings.NewReader(text), nil)
		if err != nil {
			return
		}
		last := uint64(0)
		for i, f := range unpacked(&k.packed) {
			if int(f.size) >= len(k.modules) || i > 0 && f.start <= last {
				t.Fatalf("function %d: %+v", i, f)
			}
			last = f.start
		}
	})
}

func FuzzDemangled(f *testing.F) {
	f.Add("_ZN3foo3barEv")
	f.Add("_RNvC6_123foo3bar")
	f.Add(copied(40))
	f.Add(copiedClosures(40))
	f.Fuzz(func(t *testing.T, name string) {
		if got := (&demangler{}).name(name); len(got) > max(len(name), 4<<maxDemangledBits) {
			t.Fatalf("%d bytes", len(got))
		}
	})
}

func BenchmarkNewKernel(b *testing.B) {
	for b.Loop() {
		k, err := NewKernel(procfs.FS{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(k.symbols.bytes()), "bytes")
	}
}
