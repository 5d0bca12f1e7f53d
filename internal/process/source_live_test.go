//go:build linux

package process

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/target"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

const definer = target.Common + `
int main(void) { say(&VARIABLE); await(); return 0; }`

// loadsAll loads the libraries that are its arguments.
const loadsAll = target.Common + `
int main(int argc, char **argv) {
	for (int i = 1; i < argc; i++)
		if (!dlopen(argv[i], RTLD_NOW | RTLD_LOCAL)) return 1;
	puts("1"); fflush(stdout); await();
}`

// requireSource checks that one source was published and leads to the variable.
func requireSource(t *testing.T, p *program, sources []record.LabelSource, abi record.ABI, tp, variable uint64) {
	t.Helper()
	require.Len(t, sources, 1)
	require.Equal(t, abi, sources[0].ABI)
	got, err := tlsresolve.LocationOf(&sources[0]).Address(procfs.Memory{PID: p.PID}, labelsource.HostMachine(), tp)
	require.NoError(t, err)
	require.Equal(t, variable, got)
}

func TestSourceInExecutable(t *testing.T) {
	for name, tc := range map[string]struct {
		abi    record.ABI
		define string
		flags  []string
	}{
		"v0 PIE":                   {record.ABIV0, target.DefineV0, []string{"-pie", "-rdynamic"}},
		"v1 PIE":                   {record.ABIV1, target.DefineV1, []string{"-pie", "-rdynamic"}},
		"thread context PIE":       {record.ABIThreadContext, target.DefineCtx, []string{"-pie", "-rdynamic"}},
		"v1 not PIE":               {record.ABIV1, target.DefineV1, []string{"-no-pie", "-rdynamic"}},
		"v0 static":                {record.ABIV0, target.DefineV0, []string{"-static"}},
		"v1 static PIE":            {record.ABIV1, target.DefineV1, []string{"-static-pie"}},
		"v1 without a version":     {record.ABIV1, "__thread void *custom_labels_current_set;\n", []string{"-rdynamic"}},
		"v1 not separate segments": {record.ABIV1, target.DefineV1, []string{"-rdynamic", "-Wl,-z,noseparate-code"}},
	} {
		t.Run(name, func(t *testing.T) {
			source := "#include <stdint.h>\n" + tc.define + definer
			path := compile(t, "p", source, append(tc.flags, "-DVARIABLE="+tc.abi.Symbol())...)
			p := start(t, path)
			var tp, variable uint64
			p.Line(&tp, &variable)

			r := newRecorder()
			table := runTable(t, Options{Publisher: r, RescanInterval: quiet})
			ev := p.exists()
			proc := loaded(t, table, ev)
			sources, ok := r.of(ev.Process)
			require.True(t, ok, "published with the information")
			requireSource(t, p, sources, tc.abi, tp, variable)
			require.Equal(t, []labelsource.Status{{
				Path: path, ABI: tc.abi, Model: "local-exec", Location: tlsresolve.LocationOf(&sources[0]),
			}}, proc.Info().Sources)
		})
	}
}

func TestSourceInLibrary(t *testing.T) {
	for name, tc := range map[string]struct {
		abi    record.ABI
		define string
		flags  []string
	}{
		"descriptor":      {record.ABIV1, target.DefineV1, []string{"-mtls-dialect=gnu2"}},
		"general dynamic": {record.ABIV0, target.DefineV0, []string{"-mtls-dialect=gnu"}},
		"initial-exec":    {record.ABIThreadContext, target.DefineCtx, []string{"-ftls-model=initial-exec"}},
	} {
		if runtime.GOARCH == "arm64" {
			continue // named otherwise there; the corpus of tlsresolve has them
		}
		t.Run(name, func(t *testing.T) {
			lib := target.Library(t, tc.define, tc.abi.Symbol(), tc.flags...)
			path := compile(t, "p", target.Common+`
void *where(void);
int main(void) { say(where()); await(); return 0; }`, lib)
			p := start(t, path)
			var tp, variable uint64
			p.Line(&tp, &variable)

			r := newRecorder()
			table := runTable(t, Options{Publisher: r, RescanInterval: quiet})
			ev := p.exists()
			table.HandleEvent(ev)
			var sources []record.LabelSource
			eventually(t, "source published", func() bool { sources, _ = r.of(ev.Process); return len(sources) != 0 })
			requireSource(t, p, sources, tc.abi, tp, variable)
		})
	}
}

const loader = target.Common + `
int main(int argc, char **argv) {
	puts("1"); fflush(stdout);
	await();
	void *lib = dlopen(argv[1], RTLD_NOW);
	if (!lib) { fputs(dlerror(), stderr); return 1; }
	void *(*where)(void) = dlsym(lib, "where");
	say(where());
	await();
	dlclose(lib);
	puts("1"); fflush(stdout);
	await();
	return 0;
}`

// TestLibraryLoadedLater covers the three ways in which a library is noticed
// that a known process loads: an event, lost events, no event at all.
func TestLibraryLoadedLater(t *testing.T) {
	lib := target.Library(t, target.DefineV1, "custom_labels_current_set")
	path := compile(t, "p", loader)
	for name, tc := range map[string]struct {
		rescan time.Duration
		event  func(pid int) *record.Event
	}{
		"mapping event": {quiet, func(pid int) *record.Event { return &record.Event{Kind: record.EventMapping, PID: pid} }},
		"events lost":   {quiet, func(int) *record.Event { return &record.Event{Kind: record.EventMappingsLost} }},
		"periodic":      {100 * time.Millisecond, func(int) *record.Event { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, path, lib)
			var ready int
			p.Line(&ready)
			r := newRecorder()
			table := runTable(t, Options{Publisher: r, RescanInterval: tc.rescan})
			ev := p.exists()
			proc := loaded(t, table, ev)
			sources, ok := r.of(ev.Process)
			require.True(t, ok)
			require.Empty(t, sources)

			p.Tell()
			var tp, variable uint64
			p.Line(&tp, &variable)
			if ev := tc.event(p.PID); ev != nil {
				table.HandleEvent(*ev)
			}
			eventually(t, "source published", func() bool {
				table.Lookup(ev.Process, ev.PID, nobody, nil) // what is not sampled is not looked at periodically
				sources, _ = r.of(ev.Process)
				return len(sources) != 0
			})
			requireSource(t, p, sources, record.ABIV1, tp, variable)
			eventually(t, "library shown", func() bool {
				for _, m := range proc.Info().Mappings {
					if m.Path == lib {
						return m.File != nil
					}
				}
				return false
			})

			p.Tell()
			p.Line(&ready)
			if ev := tc.event(p.PID); ev != nil {
				table.HandleEvent(*ev)
			}
			eventually(t, "source of the unloaded library withdrawn", func() bool {
				table.Lookup(ev.Process, ev.PID, nobody, nil)
				s, ok := r.of(ev.Process)
				return ok && len(s) == 0
			})
		})
	}
}

// TestSourceWhileLoading sends the mapping event from the midst of the load.
func TestSourceWhileLoading(t *testing.T) {
	lib := target.Library(t, target.DefineV1, "custom_labels_current_set")
	p := start(t, compile(t, "p", loader), lib)
	var ready int
	p.Line(&ready)
	r := newRecorder()
	table := runTable(t, Options{Publisher: r, RescanInterval: quiet})
	ev := p.exists()
	loaded(t, table, ev)

	p.Tell()
	deadline := time.Now().Add(time.Minute)
	for {
		table.HandleEvent(record.Event{Kind: record.EventMapping, PID: p.PID})
		if s, _ := r.of(ev.Process); len(s) != 0 {
			break
		}
		require.True(t, time.Now().Before(deadline))
		time.Sleep(100 * time.Microsecond)
	}
	var tp, variable uint64
	p.Line(&tp, &variable)
	sources, _ := r.of(ev.Process)
	requireSource(t, p, sources, record.ABIV1, tp, variable)
}

func TestSourceRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		source string
		flags  []string
		state  labelsource.State
	}{
		"v0 symbol with version 1": {
			"#include <stdint.h>\n__thread struct { void *s; uint64_t n; } custom_labels_thread_local_data;\nint custom_labels_abi_version = 1;\n" + definer,
			[]string{"-rdynamic", "-DVARIABLE=custom_labels_thread_local_data"}, labelsource.UnsupportedVersion,
		},
		"v1 symbol with version 2": {
			"__thread void *custom_labels_current_set; int custom_labels_abi_version = 2;\n" + definer,
			[]string{"-rdynamic", "-DVARIABLE=custom_labels_current_set"}, labelsource.UnsupportedVersion,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, compile(t, "p", tc.source, tc.flags...))
			var tp, variable uint64
			p.Line(&tp, &variable)
			r := newRecorder()
			table := runTable(t, Options{Publisher: r, RescanInterval: quiet})
			ev := p.exists()
			info := loaded(t, table, ev).Info()
			require.Len(t, info.Sources, 1)
			require.Equal(t, tc.state, info.Sources[0].State)
			require.NotEmpty(t, info.Sources[0].Err)
			sources, ok := r.of(ev.Process)
			require.True(t, ok)
			require.Empty(t, sources)
		})
	}
}

// TestVersionCopied has a program that refers to the library's version, so that
// the linker gives it a copy. It defines no labels by that.
func TestVersionCopied(t *testing.T) {
	lib := target.Library(t, target.DefineV1, "custom_labels_current_set")
	p := start(t, compile(t, "p", target.Common+`
void *where(void);
extern int custom_labels_abi_version;
extern __thread void *custom_labels_current_set;
int main(void) { say(where() == &custom_labels_current_set ? where() : 0); await(); return custom_labels_abi_version; }`,
		"-fno-pie", "-no-pie", lib))
	var tp, variable uint64
	p.Line(&tp, &variable)
	r := newRecorder()
	table := runTable(t, Options{Publisher: r, RescanInterval: quiet})
	ev := p.exists()
	proc := loaded(t, table, ev)
	var sources []record.LabelSource
	eventually(t, "source published", func() bool { sources, _ = r.of(ev.Process); return len(sources) != 0 })
	requireSource(t, p, sources, record.ABIV1, tp, variable)
	require.Len(t, proc.Info().Sources, 1)
	require.Equal(t, lib, proc.Info().Sources[0].Path)
}

// TestNotProgram maps an executable that the process does not run.
func TestNotProgram(t *testing.T) {
	other := compile(t, "other", "#include <stdint.h>\n"+target.DefineV1+definer, "-rdynamic", "-DVARIABLE=custom_labels_current_set")
	p := start(t, compile(t, "p", target.Common+`
#include <fcntl.h>
int main(int argc, char **argv) {
	int fd = open(argv[1], O_RDONLY);
	mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 4096);
	puts("1"); fflush(stdout); await();
}`), other)
	var ready int
	p.Line(&ready)
	r := newRecorder()
	core, said := observer.New(zap.InfoLevel)
	table := runTable(t, Options{Publisher: r, RescanInterval: quiet, Logger: zap.New(core)})
	info := loaded(t, table, p.exists()).Info()
	require.Len(t, info.Sources, 1)
	require.Equal(t, labelsource.NotProgram, info.Sources[0].State)
	lines := func() int { return said.FilterMessage("A label source cannot be read.").Len() }
	require.Equal(t, 1, lines())

	// A program that is not mapped has begun while its mappings were read: they are another's.
	again := &look{info: Info{Mappings: info.Mappings, Sources: slices.Clone(info.Sources)}}
	again.info.Sources[0].ABI = record.ABIV0 // of which nothing was said yet
	table.explain(again)
	require.Equal(t, 1, lines())
	again.read.program = info.Mappings[0].File.ID()
	table.explain(again)
	require.Equal(t, 2, lines())
}

// TestStartedByLoader runs a program as the argument of its dynamic loader.
func TestStartedByLoader(t *testing.T) {
	path := compile(t, "p", "#include <stdint.h>\n"+target.DefineV1+definer, "-rdynamic", "-DVARIABLE=custom_labels_current_set")
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	st, err := file.Stat()
	require.NoError(t, err)
	facts, err := executable.ReadFacts(t.Context(), file, st.Size())
	require.NoError(t, err)
	p := start(t, facts.Interp, path)
	var tp, variable uint64
	p.Line(&tp, &variable)
	r := newRecorder()
	table := runTable(t, Options{Publisher: r, RescanInterval: quiet})
	ev := p.exists()
	loaded(t, table, ev)
	sources, _ := r.of(ev.Process)
	requireSource(t, p, sources, record.ABIV1, tp, variable)
}

func TestManySources(t *testing.T) {
	// Every library is a copy with a variable of its own, as RTLD_LOCAL makes them.
	args := []string{}
	for range 6 {
		args = append(args, target.Library(t, target.DefineV1, "custom_labels_current_set", "-Wl,-Bsymbolic"))
	}
	p := start(t, compile(t, "p", loadsAll), args...)
	var ready int
	p.Line(&ready)
	r := newRecorder()
	table := runTable(t, Options{Publisher: r, RescanInterval: quiet})
	ev := p.exists()
	proc := loaded(t, table, ev)
	eventually(t, "sources settled", func() bool { s, _ := r.of(ev.Process); return len(s) == record.MaxLabelSources })
	states := map[labelsource.State]int{}
	eventually(t, "statuses shown", func() bool {
		clear(states)
		for _, s := range proc.Info().Sources {
			states[s.State]++
		}
		return states[labelsource.NotRelocated] == 0
	})
	require.Equal(t, map[labelsource.State]int{labelsource.Active: 4, labelsource.OverLimit: 2}, states)
}

// A library that is loaded later does not take the place of a source that is read, nor of the program's.
func TestSourcesKeepTheirPlaces(t *testing.T) {
	args := []string{}
	for range record.MaxLabelSources + 1 {
		args = append(args, target.Library(t, target.DefineV1, "custom_labels_current_set", "-Wl,-Bsymbolic"))
	}
	program := compile(t, "p", target.Common+target.DefineV0+`
int main(int argc, char **argv) {
	void *hole = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
	for (int i = 1; i < argc; i++) {
		if (!dlopen(argv[i], RTLD_NOW | RTLD_LOCAL)) return 1;
		if (i == 1) dlclose(hole); /* the second comes above the first, the others below */
		puts("1"); fflush(stdout); await();
	}
	int child = fork();
	if (child) { printf("%d\n", child); fflush(stdout); }
	for (;;) await();
}`, "-rdynamic")
	p := start(t, program, args...)
	r := newRecorder()
	table := runTable(t, Options{Publisher: r, RescanInterval: quiet})
	var ready int
	p.Line(&ready)
	ev := p.exists()
	proc := loaded(t, table, ev)
	want := []string{program}
	active := func() (paths []string) {
		for _, s := range proc.Info().Sources {
			if s.State == labelsource.Active {
				paths = append(paths, s.Path)
			}
		}
		return paths
	}
	for i, library := range args {
		if i > 0 {
			p.Tell()
			p.Line(&ready)
			table.HandleEvent(record.Event{Kind: record.EventMapping, PID: p.PID})
		}
		statuses := i + 2
		eventually(t, "all are looked at", func() bool {
			sources := proc.Info().Sources
			return len(sources) == statuses && !slices.ContainsFunc(sources, func(s labelsource.Status) bool { return s.State == labelsource.NotRelocated })
		})
		if len(want) < record.MaxLabelSources {
			want = append(want, library)
		}
		require.Equal(t, want, active(), "%+v", proc.Info().Sources)
		sources, _ := r.of(ev.Process)
		require.Len(t, sources, len(want))
	}

	// So they are in a child of the process.
	p.Tell()
	var pid int
	p.Line(&pid)
	forked := running(pid).exists()
	forked.Kind, forked.Parent = record.EventFork, ev.Process
	table.HandleEvent(forked)
	proc = table.Lookup(forked.Process, forked.PID, nobody, []byte("comm"))
	// It begins with what its parent shows. What is told of it is what its own looks have settled.
	eventually(t, "sources settled", func() bool { s, _ := r.of(forked.Process); return len(s) == len(want) && len(active()) == len(want) })
	require.Equal(t, want, active())

	// Who looks for the first time when all is there goes by addresses.
	other := newRecorder()
	late := loaded(t, runTable(t, Options{Publisher: other, RescanInterval: quiet}), ev)
	eventually(t, "sources settled", func() bool { s, _ := other.of(ev.Process); return len(s) == record.MaxLabelSources })
	proc = late
	eventually(t, "statuses shown", func() bool { return len(active()) == record.MaxLabelSources })
	want[1], want[2] = want[2], want[1]
	require.Equal(t, want, active())
}

// A library is written over while it is not loaded, and loaded again: it has the same address and the
// same inode, but its variable is another one.
func TestLibraryLoadedAgain(t *testing.T) {
	const where = "\nvoid *where(void) { return &otel_thread_ctx_v1; }\n"
	flags := []string{"-shared", "-fPIC", "-O1"}
	// The order of the slots that the loader fills follows the names.
	lib := func(name, other string) string {
		return compile(t, name, "#include <stdint.h>\n__attribute__((visibility(\"default\"))) __thread void *"+other+";\n"+
			target.DefineCtx+where+"void *other(void) { return &"+other+"; }\n", flags...)
	}
	one, two := lib("one.so", "another_variable"), lib("two.so", "other_one")
	path := filepath.Join(t.TempDir(), "lib.so")
	write := func(from string) {
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, text, 0o755))
	}
	write(one)
	p := start(t, compile(t, "p", target.Common+`
		int main(int argc, char **argv) {
			for (;;) {
				void *lib = dlopen(argv[1], RTLD_NOW);
				if (!lib) { fputs(dlerror(), stderr); return 1; }
				void *(*where)(void) = dlsym(lib, "where");
				say(where());
				await();
				dlclose(lib);
				puts("1"); fflush(stdout);
				await();
			}
		}`), path)
	var tp, variable uint64
	p.Line(&tp, &variable)
	r := newRecorder()
	table := runTable(t, Options{Publisher: r, RescanInterval: quiet})
	ev := p.exists()
	proc := loaded(t, table, ev)
	eventually(t, "source published", func() bool { s, _ := r.of(ev.Process); return len(s) != 0 })
	sources, _ := r.of(ev.Process)
	requireSource(t, p, sources, record.ABIThreadContext, tp, variable)
	before := mappingOf(t, proc, path)

	p.Tell()
	var unloaded int
	p.Line(&unloaded)
	write(two)
	p.Tell()
	p.Line(&tp, &variable)
	table.HandleEvent(record.Event{Kind: record.EventMapping, PID: p.PID})
	after := executable.Mapping{}
	eventually(t, "read again", func() bool {
		after = mappingOf(t, proc, path)
		return after.File != nil && after.File != before.File
	})
	require.Equal(t, before.Start, after.Start)
	require.Equal(t, before.Inode, after.Inode)
	eventually(t, "source published", func() bool { s, _ := r.of(ev.Process); return len(s) != 0 && !slices.Equal(s, sources) })
	sources, _ = r.of(ev.Process)
	requireSource(t, p, sources, record.ABIThreadContext, tp, variable)
}

func mappingOf(t *testing.T, p *Process, path string) executable.Mapping {
	mappings := p.Info().Mappings
	i := slices.IndexFunc(mappings, func(m executable.Mapping) bool { return m.Path == path })
	if i < 0 {
		return executable.Mapping{} // not mapped now
	}
	return mappings[i]
}
