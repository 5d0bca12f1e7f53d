//go:build linux && amd64

package tlsresolve_test

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// remote is the memory of another process.
type remote int

func (pid remote) ReadAt(p []byte, addr uint64) error {
	local := []unix.Iovec{{Base: &p[0]}}
	local[0].SetLen(len(p))
	n, err := unix.ProcessVMReadv(int(pid), local, []unix.RemoteIovec{{Base: uintptr(addr), Len: len(p)}}, 0)
	if err == nil && n < len(p) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// host is a running host.c.
type host struct {
	pid     int
	program string
	threads []thread
}

type thread struct {
	name        string
	tp, address uint64
}

func start(t *testing.T, program string, env []string, args ...string) host {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), env...)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	h := host{pid: cmd.Process.Pid, program: program}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && lines.Text() != "ready" {
		var th thread
		_, err := fmt.Sscanf(lines.Text(), "%s %v %v", &th.name, &th.tp, &th.address)
		require.NoError(t, err, lines.Text())
		h.threads = append(h.threads, th)
	}
	require.Equal(t, "ready", lines.Text())
	require.Len(t, h.threads, 4)
	return h
}

// bias finds the load bias of a file from /proc/PID/maps.
func (h host) bias(t *testing.T, f *elffile.File, path string) uint64 {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", h.pid))
	require.NoError(t, err)
	path, err = filepath.EvalSymlinks(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(maps)) {
		var start, end, offset uint64
		var perms string
		_, err := fmt.Sscanf(line, "%x-%x %s %x", &start, &end, &perms, &offset)
		require.NoError(t, err)
		if strings.HasSuffix(strings.TrimSpace(line), " "+path) && perms[2] == 'x' {
			bias, ok := f.LoadBias(start, offset, true)
			require.True(t, ok)
			return bias
		}
	}
	t.Fatalf("%s is not mapped:\n%s", path, maps)
	return 0
}

// check resolves the variable of the file at path in the process and compares
// each thread's address with what the thread itself said.
func (h host) check(t *testing.T, path string, model tlsresolve.Model, kind record.TLSKind, libc tlsresolve.Libc, startup bool) {
	t.Helper()
	f := open(t, path)
	plan, err := tlsresolve.NewPlan(f, symbol)
	require.NoError(t, err)
	require.Equal(t, model, plan.Model())
	bias := h.bias(t, f, path)
	target := tlsresolve.Target{Machine: f.Machine, Libc: libc}
	location, err := plan.Resolve(remote(h.pid), bias, target)
	require.NoError(t, err)
	h.checkLocation(t, f, location, kind, startup)

	// With what the loader knows, it is the same variable, told better: what
	// was there at the start lies in static TLS.
	target.Modules = tlsresolve.NewModules(files{t, h})
	location, err = plan.Resolve(remote(h.pid), bias, target)
	require.NoError(t, err)
	if kind == record.TLSDTVGlibc && startup {
		kind = record.TLSStatic
	}
	h.checkLocation(t, f, location, kind, startup)
	require.Equal(t, kind == record.TLSDTVGlibc, location.Generation != 0)
}

// checkLocation compares each thread's address with what the thread itself said.
func (h host) checkLocation(t *testing.T, f *elffile.File, location tlsresolve.Location, kind record.TLSKind, startup bool) {
	t.Helper()
	mem := remote(h.pid)
	require.Equal(t, kind, location.Kind, "%+v", location)
	checked := 0
	for _, th := range h.threads {
		got, err := location.Address(mem, f.Machine, th.tp)
		if th.address == 0 {
			// glibc allocates the blocks of dlopen'ed libraries when a thread
			// first uses them, musl and start-up do so for all threads.
			if kind == record.TLSDTVGlibc && !startup {
				require.True(t, errors.Is(err, tlsresolve.ErrNotAllocated) || errors.Is(err, tlsresolve.ErrStaleModule), "%s: %v", th.name, err)
			} else {
				require.NoError(t, err, "%s", th.name)
			}
			continue
		}
		require.NoError(t, err, "%s", th.name)
		require.Equal(t, th.address, got, "%s: %+v", th.name, location)
		checked++
	}
	require.Equal(t, 3, checked)
}

func TestLiveExecutable(t *testing.T) {
	links := map[string][]string{
		"pie":        {"-fPIE", "-pie", "-rdynamic"},
		"no-pie":     {"-fno-pie", "-no-pie"},
		"static":     {"-fno-pie", "-no-pie", "-static"},
		"static-pie": {"-fPIE", "-static-pie"},
	}
	layouts := [][]string{{"-DALIGN=8"}, {"-DALIGN=64", "-DPAD=4"}, {"-DALIGN=256", "-DPAD=4099"}}
	for _, compiler := range []string{corpus.GCC, corpus.MuslGCC} {
		for link, flags := range links {
			for _, layout := range layouts {
				t.Run(compiler+"/"+link+"/"+strings.Join(layout, ""), func(t *testing.T) {
					t.Parallel()
					args := append([]string{"host.c", "variable.c", "-DLINKED", "-pthread"}, flags...)
					program := corpus.Build(t, "host", compiler, append(args, layout...)...)
					h := start(t, program, nil)
					h.check(t, program, tlsresolve.LocalExec, record.TLSStatic, tlsresolve.UnknownLibc, true)
				})
			}
		}
	}
}

// libraryCase is a library, how it is loaded and what is expected of it.
type libraryCase struct {
	name     string
	compiler string
	library  []string // flags
	startup  bool     // else dlopen'ed
	env      string
	model    tlsresolve.Model
	kind     record.TLSKind
}

func libraryCases() []libraryCase {
	const (
		big    = "-DPAD=4099" // does not fit the static surplus of glibc
		first  = "-UPAD"      // nothing before it in its block
		hidden = "-DVISIBILITY=hidden"
		desc   = "-mtls-dialect=gnu2"
	)
	ie, gd, td := tlsresolve.InitialExec, tlsresolve.GeneralDynamic, tlsresolve.Descriptor
	static, glibc, musl := record.TLSStatic, record.TLSDTVGlibc, record.TLSDTVMusl
	return []libraryCase{
		{"startup TLSDESC", corpus.GCC, []string{desc}, true, "", td, static},
		{"startup TLSDESC big", corpus.GCC, []string{desc, big, "-DALIGN=64"}, true, "", td, static},
		{"startup TLSDESC hidden", corpus.GCC, []string{desc, hidden}, true, "", td, static},
		{"startup TLSDESC gold", corpus.GCC, []string{desc, "-fuse-ld=gold"}, true, "", td, static},
		{"startup TLSDESC sysv hash", corpus.GCC, []string{desc, "-Wl,--hash-style=sysv"}, true, "", td, static},
		{"startup general-dynamic", corpus.GCC, nil, true, "", gd, glibc},
		{"startup general-dynamic hidden", corpus.GCC, []string{hidden}, true, "", gd, glibc},
		{"startup initial-exec", corpus.GCC, []string{"-ftls-model=initial-exec"}, true, "", ie, static},
		{"startup initial-exec hidden", corpus.GCC, []string{"-ftls-model=initial-exec", hidden}, true, "", ie, static},
		{"dlopen TLSDESC", corpus.GCC, []string{desc}, false, "", td, static},
		{"dlopen TLSDESC big", corpus.GCC, []string{desc, big}, false, "", td, glibc},
		{"dlopen TLSDESC big hidden", corpus.GCC, []string{desc, big, hidden}, false, "", td, glibc},
		{"dlopen TLSDESC big protected", corpus.GCC, []string{desc, big, "-DVISIBILITY=protected"}, false, "", td, glibc},
		{"dlopen TLSDESC big symbolic", corpus.GCC, []string{desc, big, "-Wl,-Bsymbolic"}, false, "", td, glibc},
		{"dlopen TLSDESC no surplus", corpus.GCC, []string{desc}, false, "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=0", td, glibc},
		{"dlopen TLSDESC big sibling", corpus.GCC, []string{desc, big, "-DSIBLING"}, false, "", td, glibc},
		{"dlopen general-dynamic", corpus.GCC, nil, false, "", gd, glibc},
		{"dlopen general-dynamic big", corpus.GCC, []string{big}, false, "", gd, glibc},
		{"dlopen general-dynamic hidden", corpus.GCC, []string{big, hidden}, false, "", gd, glibc},
		{"dlopen general-dynamic sibling", corpus.GCC, []string{"-DPAD=40", "-DSIBLING"}, false, "", gd, glibc},
		{"startup TLSDESC first", corpus.GCC, []string{desc, first}, true, "", td, static},
		{"startup general-dynamic first", corpus.GCC, []string{first}, true, "", gd, glibc},
		{"dlopen TLSDESC first", corpus.GCC, []string{desc, first, "-DALIGN=4096"}, false, "", td, glibc},
		{"dlopen general-dynamic first", corpus.GCC, []string{first}, false, "", gd, glibc},
		{"musl dlopen TLSDESC first", corpus.MuslGCC, []string{desc, first}, false, "", td, musl},
		{"musl dlopen general-dynamic first", corpus.MuslGCC, []string{first}, false, "", gd, musl},
		{"dlopen initial-exec", corpus.GCC, []string{"-ftls-model=initial-exec"}, false, "", ie, static},
		{"musl startup TLSDESC", corpus.MuslGCC, []string{desc}, true, "", td, static},
		{"musl startup general-dynamic", corpus.MuslGCC, nil, true, "", gd, musl},
		{"musl startup initial-exec", corpus.MuslGCC, []string{"-ftls-model=initial-exec"}, true, "", ie, static},
		{"musl dlopen TLSDESC", corpus.MuslGCC, []string{desc}, false, "", td, musl},
		{"musl dlopen TLSDESC big hidden", corpus.MuslGCC, []string{desc, big, hidden}, false, "", td, musl},
		{"musl dlopen general-dynamic", corpus.MuslGCC, nil, false, "", gd, musl},
		{"musl dlopen general-dynamic big", corpus.MuslGCC, []string{big}, false, "", gd, musl},
	}
}

func TestLiveLibrary(t *testing.T) {
	for _, c := range libraryCases() {
		for _, link := range []string{"-pie", "-no-pie"} {
			t.Run(c.name+link, func(t *testing.T) {
				t.Parallel()
				library := corpus.Library(t, c.compiler, append([]string{"-DPAD=40"}, c.library...)...)
				args := []string{"host.c", "-pthread", "-fPIE", link}
				if link == "-no-pie" {
					args[2] = "-fno-pie"
				}
				var programArgs []string
				if c.startup {
					args = append(args, "-DLINKED", library, "-Wl,-rpath,"+filepath.Dir(library))
				} else {
					args = append(args, "-ldl")
					programArgs = []string{library}
				}
				program := corpus.Build(t, "host", c.compiler, args...)
				var env []string
				if c.env != "" {
					env = []string{c.env}
				}
				h := start(t, program, env, programArgs...)
				if strings.HasSuffix(c.name, "sibling") {
					// The host knows the address of the sibling only.
					h.checkSibling(t, library, program)
					return
				}
				h.check(t, library, c.model, c.kind, tlsresolve.LibcOf(open(t, program).Interp()), c.startup)
			})
		}
	}
}

// checkSibling compares with the address of variable_sibling[1], which stands
// at a distance known from .symtab.
func (h host) checkSibling(t *testing.T, library, program string) {
	t.Helper()
	f := open(t, library)
	ours, ok, err := f.TLSSymbol(symbol)
	require.NoError(t, err)
	require.True(t, ok)
	sibling, ok, err := f.TLSSymbol("variable_sibling")
	require.NoError(t, err)
	require.True(t, ok)
	for i := range h.threads {
		if h.threads[i].address != 0 {
			h.threads[i].address += ours.Value - sibling.Value - 8
		}
	}
	plan, err := tlsresolve.NewPlan(f, symbol)
	require.NoError(t, err)
	h.check(t, library, plan.Model(), record.TLSDTVGlibc, tlsresolve.LibcOf(open(t, program).Interp()), false)
}

// An executable's definition takes the place of a library's: both plans must
// lead to the executable's variable.
func TestLiveInterposition(t *testing.T) {
	for _, dialect := range []string{"gnu", "gnu2"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			library := corpus.Library(t, corpus.GCC, "-mtls-dialect="+dialect)
			program := corpus.Build(t, "host", corpus.GCC, "host.c", "variable.c", "-DLINKED", "-pthread", "-rdynamic",
				"-Wl,--no-as-needed", library, "-Wl,-rpath,"+filepath.Dir(library))
			h := start(t, program, nil)
			for _, path := range []string{program, library} {
				f := open(t, path)
				plan, err := tlsresolve.NewPlan(f, symbol)
				require.NoError(t, err)
				location, err := plan.Resolve(remote(h.pid), h.bias(t, f, path), tlsresolve.Target{Machine: f.Machine, Libc: tlsresolve.Glibc})
				require.NoError(t, err)
				for _, th := range h.threads {
					got, err := location.Address(remote(h.pid), f.Machine, th.tp)
					require.NoError(t, err)
					if th.address != 0 {
						require.Equal(t, th.address, got, "%s %s", path, th.name)
					}
				}
			}
		})
	}
}

// Of two versions of the variable the default one is found.
func TestLiveVersions(t *testing.T) {
	for _, dialect := range []string{"gnu", "gnu2"} {
		for _, hash := range []string{"gnu", "sysv"} {
			t.Run(dialect+"/"+hash, func(t *testing.T) {
				t.Parallel()
				library := corpus.Build(t, "libversioned.so", corpus.GCC, "versioned.c", "-shared", "-fPIC",
					"-mtls-dialect="+dialect, "-Wl,--hash-style="+hash, "-Wl,--version-script="+corpus.Source(t, "versioned.map"))
				program := corpus.Build(t, "host", corpus.GCC, "host.c", "-pthread", "-ldl")
				h := start(t, program, nil, library)
				model, kind := tlsresolve.Descriptor, record.TLSStatic
				if dialect == "gnu" {
					model, kind = tlsresolve.GeneralDynamic, record.TLSDTVGlibc
				}
				h.check(t, library, model, kind, tlsresolve.Glibc, false)
			})
		}
	}
}

func TestLiveMachineMismatch(t *testing.T) {
	program := corpus.Build(t, "host", corpus.GCC, "host.c", "variable.c", "-DLINKED", "-pthread")
	plan, err := tlsresolve.NewPlan(open(t, program), symbol)
	require.NoError(t, err)
	_, err = plan.Resolve(remote(0), 0, tlsresolve.Target{Machine: elf.EM_AARCH64, Libc: tlsresolve.Glibc})
	require.ErrorIs(t, err, tlsresolve.ErrMachine)
}
