package symbol

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

const procModules = `ext4 4096 2 - Live 0xffffffffc0001000
rust_mod 8192 0 ext4, Live 0xffffffffc0002000 (OE)
`

// loading is a kernel whose modules, symbols and time a test changes.
type loading struct {
	*Kernel
	t    *testing.T
	root string
	time time.Time
}

func newLoading(t *testing.T, symbols, modules string) *loading {
	l := &loading{t: t, root: t.TempDir(), time: time.Now()}
	l.write(symbols, modules)
	k, err := NewKernel(procfs.FS{Root: l.root})
	require.NoError(t, err)
	k.now = func() time.Time { return l.time }
	k.readAt = l.time
	l.Kernel = k
	return l
}

func (l *loading) write(symbols, modules string) {
	writeProc(l.t, l.root, "kallsyms", symbols)
	writeProc(l.t, l.root, "modules", modules)
}

// after has so much time pass before a batch begins, and says whether the symbols were read.
func (l *loading) after(d time.Duration) (read bool) {
	l.time = l.time.Add(d)
	before := l.symbols
	require.NoError(l.t, l.Refresh())
	return l.symbols != before
}

// at returns "function module" of an address.
func (l *loading) at(addr uint64) string {
	fn, module, _ := l.Lookup(addr)
	return strings.TrimSpace(fn + " " + module)
}

// Functions end where their module does, and the kernel's own where its text does.
func TestKernelModulesEnd(t *testing.T) {
	const text = `ffffffff80000000 t before_the_text
ffffffff81000000 T _stext
ffffffff81000100 t something
ffffffff81000400 D _etext
ffffffff81000800 t at_boot
ffffffffc0000000 t init_ext4	[ext4]
ffffffffc0001000 t first	[ext4]
ffffffffc0001100 t last	[ext4]
ffffffffc0003f00 t rust	[rust_mod]
`
	l := newLoading(t, text, procModules)
	for addr, want := range map[uint64]string{
		0xffffffff80000001: "",
		0xffffffff810003ff: "something",
		0xffffffff81000400: "",
		0xffffffff81000801: "",
		0xffffffffc0000010: "init_ext4 ext4",
		0xffffffffc0001010: "first ext4",
		0xffffffffc0001fff: "last ext4",
		0xffffffffc0002000: "",
		0xffffffffc0003fff: "rust rust_mod",
		0xffffffffc0004000: "",
	} {
		require.Equal(t, want, l.at(addr), "%#x", addr)
	}
	// Without the privilege to see addresses, and with lines that are none.
	l = newLoading(t, text, "ext4 4096 2 - Live 0x0000000000000000\nrust_mod x 0 - Live 0xffffffffc0002000\nrust_mod\n")
	require.Equal(t, "last ext4", l.at(0xffffffffc0002000))
	require.Equal(t, "rust rust_mod", l.at(0xffffffffc0004000))
}

// A module that is loaded just behind another one, and one that takes the place of another one,
// have their own names with the next batch, although no lookup was in vain.
func TestKernelModuleLoaded(t *testing.T) {
	const above, place = 0xffffffffc0001804, 0xffffffffd0000004
	l := newLoading(t, kallsyms+"ffffffffd0000000 t early\t[first]\n", "ext4 256 0 - Live 0x0\nfirst 4096 0 - Live 0x0\n")
	require.Equal(t, "early first", l.at(place))
	require.Equal(t, "123foo::bar rust_mod", l.at(above), "the end of the module is hidden")
	require.False(t, l.after(0))
	l.write(kallsyms+"ffffffffc0001800 t new\t[near]\nffffffffd0000000 t late\t[second]\n",
		"ext4 256 0 - Live 0x0\nnear 512 0 - Live 0x0\nsecond 4096 0 - Live 0x0\n")
	require.True(t, l.after(0))
	require.Equal(t, "late second", l.at(place))
	require.Equal(t, "new near", l.at(above))
	writeProc(t, l.root, "modules", "ext4 256 5 near, Live 0x0\nnear 512 9 - Unloading 0x0 (E)\nsecond 4096 1 - Live 0x0\n")
	require.False(t, l.after(0), "only uses have changed")
	require.NoError(t, os.Remove(filepath.Join(l.root, "modules")))
	require.False(t, l.after(0), "that it can't be read says nothing")
}

// A module that has changed has no name before the symbols could be read.
func TestKernelModulesUnread(t *testing.T) {
	const own, in = 0xffffffff81000100, 0xffffffffc0001010
	l := newLoading(t, kallsyms, procModules)
	require.Equal(t, "module_function ext4", l.at(in))
	l.write("0 T hidden\n", "other 4096 0 - Live 0xffffffffc0001000\n")
	require.ErrorIs(t, l.Refresh(), ErrKernelHidden)
	require.Empty(t, l.at(in))
	require.Equal(t, "something", l.at(own))
	require.False(t, l.after(0), "not at once again")
	writeProc(t, l.root, "kallsyms", strings.ReplaceAll(kallsyms, "[ext4]", "[other]"))
	require.True(t, l.after(2*refreshGap))
	require.Equal(t, "module_function other", l.at(in))
}

// A BPF program that takes the place of another one does not keep its name.
func TestKernelRenewed(t *testing.T) {
	const own, in = 0xffffffff81000100, 0xffffffffa0000011
	l := newLoading(t, kallsyms, procModules)
	require.Equal(t, "something", l.at(own))
	require.False(t, l.after(2*renewAfter), "nothing was looked up that can have changed")
	require.Equal(t, "bpf_prog_0123456789abcdef_sample bpf", l.at(in))
	writeProc(t, l.root, "kallsyms", strings.ReplaceAll(kallsyms, "_sample", "_other"))
	require.True(t, l.after(0))
	require.Equal(t, "bpf_prog_0123456789abcdef_other bpf", l.at(in))
	require.False(t, l.after(renewAfter-1))
	require.True(t, l.after(1))
	require.Equal(t, refreshGap, l.gap, "no lookup was in vain")
	require.False(t, l.after(renewAfter))
}

func FuzzParseModule(f *testing.F) {
	f.Add("rust_mod 8192 0 ext4, Live 0xffffffffc0002000 (OE)")
	f.Fuzz(func(t *testing.T, line string) {
		m, ok := parseModule([]byte(line))
		if ok && (m.name == "" || !strings.Contains(line, strconv.FormatUint(m.size, 10))) {
			t.Fatalf("%+v", m)
		}
	})
}
