//go:build linux && amd64

package process

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/target"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// asker loads the library that is its argument, if any, and asks the dynamic
// loader for the variable's address.
const asker = target.Common + `
int main(int argc, char **argv) {
	void *lib = NULL;
	if (argc > 1 && !(lib = LOAD)) { fputs(dlerror(), stderr); return 1; }
	say(dlsym(lib, "custom_labels_current_set"));
	await();
	return 0;
}`

// muslSpecs makes gcc what musl-gcc is.
var muslSpecs = []string{"-specs", "/usr/lib/x86_64-linux-musl/musl-gcc.specs"}

// lonely makes a library in which nothing refers to the variable that it defines.
func lonely(t *testing.T, flags ...string) string {
	return compile(t, "liblonely.so", target.DefineV1, append([]string{"-shared", "-fPIC"}, flags...)...)
}

// only waits for the one source of a process to come to rest.
func only(t *testing.T, p *program) (labelsource.Status, *Table) {
	t.Helper()
	table := runTable(t, Options{Publisher: newRecorder(), RescanInterval: quiet})
	proc := loaded(t, table, p.exists())
	var status labelsource.Status
	eventually(t, "source at rest", func() bool {
		s := proc.Info().Sources
		if len(s) == 1 {
			status = s[0]
		}
		return len(s) == 1 && status.State != labelsource.NotRelocated
	})
	return status, table
}

// TestSourceWithoutRelocation finds libraries by the list of their loader.
func TestSourceWithoutRelocation(t *testing.T) {
	const dlopened, started, namespace, byLoader = 0, 1, 2, 3
	for name, tc := range map[string]struct {
		how  int
		musl bool
		link string
		kind record.TLSKind
	}{
		"start-up":          {started, false, "-pie", record.TLSStatic},
		"dlopen":            {dlopened, false, "-pie", record.TLSDTVGlibc},
		"dlopen, not PIE":   {dlopened, false, "-no-pie", record.TLSDTVGlibc},
		"dlmopen":           {namespace, false, "-pie", record.TLSDTVGlibc},
		"program of loader": {byLoader, false, "-pie", record.TLSDTVGlibc},
		"musl, start-up":    {started, true, "-pie", record.TLSDTVMusl},
		"musl, dlopen":      {dlopened, true, "-no-pie", record.TLSDTVMusl},
		"musl, of loader":   {byLoader, true, "-pie", record.TLSDTVMusl},
	} {
		t.Run(name, func(t *testing.T) {
			var specs []string
			if tc.musl {
				specs = muslSpecs
			}
			lib := lonely(t, specs...)
			load := "dlopen(argv[1], RTLD_NOW)"
			if tc.how == namespace {
				load = "dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW)"
			}
			flags := append([]string{"-DLOAD=" + load, tc.link}, specs...)
			args := []string{lib}
			if tc.how == started {
				flags, args = append(flags, "-Wl,--no-as-needed", lib), nil
			}
			path := compile(t, "p", asker, flags...)
			if tc.how == byLoader {
				path, args = interp(t, path), []string{path, lib}
			}
			p := start(t, path, args...)
			var tp, variable uint64
			p.Line(&tp, &variable)
			status, _ := only(t, p)
			require.Equal(t, labelsource.Active, status.State, status.Err)
			require.Equal(t, "link map", status.Model)
			require.Equal(t, tc.kind, status.Location.Kind)
			require.Equal(t, tc.kind == record.TLSDTVGlibc, status.Location.Generation != 0)
			requireSource(t, p, []record.LabelSource{status.Source()}, record.ABIV1, tp, variable)
		})
	}
}

// A library that is loaded late has its labels, also when what the C library says of itself is asked only then, and
// another process of the same user that had mapped it since has ended.
func TestLateLibraryAfterShortProcess(t *testing.T) {
	testutil.RequireRoot(t) // what is mapped is opened, not what has its path
	p := start(t, compile(t, "p", target.Common+`
int main(int argc, char **argv) {
	puts("1"); fflush(stdout); await();
	if (!dlopen(argv[1], RTLD_NOW)) { fputs(dlerror(), stderr); return 1; }
	puts("2"); fflush(stdout); await(); return 0;
}`), lonely(t))
	var n int
	p.Line(&n)
	l := newLooker(t, p, Options{MaxDescriptors: -1})
	got := l.again()
	require.Empty(t, got.info.Sources)
	other := start(t, compile(t, "q", target.Common+`int main(void) { puts("1"); fflush(stdout); await(); return 0; }`))
	other.Line(&n)
	elsewhere(t, &l.reader, got.owner, other.PID, other.Stop)
	p.Tell()
	p.Line(&n)
	l.again()
	time.Sleep(2 * time.Millisecond) // more than it takes to settle
	got = l.again()
	require.Len(t, got.info.Sources, 1)
	require.Equal(t, labelsource.Active, got.info.Sources[0].State, got.info.Sources[0].Err)
}

// TestMuslByGlibcName runs programs whose loader has the name of glibc's and is musl's.
func TestMuslByGlibcName(t *testing.T) {
	const muslLoader, glibcName = "/lib/ld-musl-x86_64.so.1", "ld-linux-x86-64.so.2"
	for name, real := range map[string]string{"the library": "", "the loader": "ld-musl-x86_64.so.1"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			loader := muslLoader
			if real != "" {
				b, err := os.ReadFile(muslLoader)
				require.NoError(t, err)
				loader = filepath.Join(dir, real)
				require.NoError(t, os.WriteFile(loader, b, 0o755))
			}
			link := filepath.Join(dir, glibcName)
			require.NoError(t, os.Symlink(loader, link))
			lib := target.Library(t, target.DefineV1, "custom_labels_current_set", muslSpecs...)
			path := compile(t, "p", asker, append([]string{"-DLOAD=dlopen(argv[1], RTLD_NOW)", "-Wl,--dynamic-linker=" + link}, muslSpecs...)...)
			require.Equal(t, link, interp(t, path))
			p := start(t, path, lib)
			var tp, variable uint64
			p.Line(&tp, &variable)
			status, _ := only(t, p)
			require.Equal(t, labelsource.Active, status.State, status.Err)
			require.Equal(t, record.TLSDTVMusl, status.Location.Kind)
			requireSource(t, p, []record.LabelSource{status.Source()}, record.ABIV1, tp, variable)
		})
	}
}

func interp(t *testing.T, path string) string {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	st, err := file.Stat()
	require.NoError(t, err)
	e, err := elffile.New(file, st.Size())
	require.NoError(t, err)
	return e.Interp()
}

// TestStaticProgramLoads has a library in a program that tells nothing of its
// loader.
func TestStaticProgramLoads(t *testing.T) {
	lib := lonely(t)
	for _, link := range []string{"-static", "-static-pie"} {
		p := start(t, compile(t, "p", asker, "-DLOAD=dlopen(argv[1], RTLD_NOW)", link, "-Wno-all"), lib)
		var tp, variable uint64
		p.Line(&tp, &variable)
		status, _ := only(t, p)
		require.Equal(t, labelsource.UnsupportedModel, status.State)
		require.Contains(t, status.Err, tlsresolve.ErrUnknownLibc.Error())
	}
}

// TestCLibrarySaysNothing runs programs with C libraries that say less, or
// something else, of themselves.
func TestCLibrarySaysNothing(t *testing.T) {
	const original = "/lib/x86_64-linux-gnu/libc.so.6"
	withReference := target.Library(t, target.DefineV1, "custom_labels_current_set")
	program := compile(t, "p", asker, "-DLOAD=dlopen(argv[1], RTLD_NOW)")
	for name, tc := range map[string]struct {
		libc  func(b []byte)
		lib   string
		state labelsource.State
		err   string
	}{
		"no symbols":                {noSymbols, withReference, labelsource.Active, ""},
		"no symbols, no relocation": {noSymbols, lonely(t), labelsource.NoRelocation, "no symbols for libthread_db"},
		"other layout":              {otherLayout(t), withReference, labelsource.UnsupportedModel, "_thread_db_dtv_dtv"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(original)
			require.NoError(t, err)
			tc.libc(b)
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "libc.so.6"), b, 0o755))
			t.Setenv("LD_LIBRARY_PATH", dir)
			p := start(t, program, tc.lib)
			var tp, variable uint64
			p.Line(&tp, &variable)
			status, _ := only(t, p)
			require.Equal(t, tc.state, status.State, status.Err)
			require.Contains(t, status.Err, tc.err)
			if tc.state == labelsource.Active {
				require.Zero(t, status.Location.Generation)
				requireSource(t, p, []record.LabelSource{status.Source()}, record.ABIV1, tp, variable)
			}
		})
	}
}

// noSymbols renames what libthread_db looks for.
func noSymbols(b []byte) {
	for i := range len(b) - 11 {
		if string(b[i:i+11]) == "_thread_db_" {
			b[i+1] = 'T'
		}
	}
}

// otherLayout makes a C library say that the entries of its DTV have 8 bytes.
func otherLayout(t *testing.T) func([]byte) {
	return func(b []byte) {
		e, err := elffile.New(bytes.NewReader(b), int64(len(b)))
		require.NoError(t, err)
		sym, ok, err := e.DynamicSymbol("_thread_db_dtv_dtv")
		require.NoError(t, err)
		require.True(t, ok)
		for s := range e.Loads() {
			if sym.Value >= s.Vaddr && sym.Value < s.Vaddr+s.Filesz {
				binary.LittleEndian.PutUint32(b[s.Offset+sym.Value-s.Vaddr:], 64)
			}
		}
	}
}

// TestLoaderAskedWhenNeeded has the C library read only for places in the DTV.
func TestLoaderAskedWhenNeeded(t *testing.T) {
	for name, tc := range map[string]struct {
		flags []string
		asked bool
	}{
		"initial-exec":    {[]string{"-ftls-model=initial-exec"}, false},
		"general-dynamic": {nil, true},
	} {
		lib := target.Library(t, target.DefineV1, "custom_labels_current_set", tc.flags...)
		p := start(t, compile(t, "p", asker, "-DLOAD=dlopen(argv[1], RTLD_NOW)"), lib)
		var tp, variable uint64
		p.Line(&tp, &variable)
		status, table := only(t, p)
		require.Equal(t, labelsource.Active, status.State, status.Err)
		info := table.Lookup(p.id(), p.PID, nobody, nil).Info()
		i := slices.IndexFunc(info.Mappings, func(m executable.Mapping) bool { return filepath.Base(m.Path) == "libc.so.6" })
		require.GreaterOrEqual(t, i, 0)
		require.Equal(t, tc.asked, info.Mappings[i].File.ThreadDBKnown(), name)
	}
}

// TestInterposedAtStart has a library whose variable is the program's, at the
// start of the program's block: what a slot says that is not relocated yet.
func TestInterposedAtStart(t *testing.T) {
	for _, compiler := range []string{corpus.GCC, corpus.MuslGCC} {
		t.Run(compiler, func(t *testing.T) {
			lib := corpus.Library(t, compiler, "-DPAD=40")
			p := start(t, corpus.Build(t, "host", compiler, "host.c", "variable.c", "-DLINKED", "-pthread", "-rdynamic",
				"-Wl,--no-as-needed", lib, "-Wl,-rpath,"+filepath.Dir(lib)))
			var thread string
			var tp, variable uint64
			for range 4 { // one of them does not use the variable
				var t, v uint64
				if p.Line(&thread, &t, &v); v != 0 {
					tp, variable = t, v
				}
			}
			table := runTable(t, Options{Publisher: newRecorder(), RescanInterval: quiet})
			proc := loaded(t, table, p.exists())
			var states []labelsource.State
			eventually(t, "both at rest", func() bool {
				states = nil
				for _, s := range proc.Info().Sources {
					states = append(states, s.State)
				}
				return len(states) == 2 && !slices.Contains(states, labelsource.NotRelocated)
			})
			for _, s := range proc.Info().Sources {
				got, err := s.Location.Address(procfs.Memory{PID: p.PID}, labelsource.HostMachine(), tp)
				require.NoError(t, err)
				require.Equal(t, variable, got)
			}
			require.Contains(t, states, labelsource.Active)
			if compiler == corpus.GCC { // musl's place in the DTV is not seen to be the same
				require.Contains(t, states, labelsource.Duplicate)
			}
		})
	}
}
