//go:build linux && amd64

package tlsresolve_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// files tells of the program and the C library of a host.
type files struct {
	t *testing.T
	h host
}

func (s files) DebugAddresses() []uint64 {
	f := open(s.t, s.h.program)
	vaddr, ok := f.DebugAddress()
	if !ok {
		return nil
	}
	return []uint64{s.h.bias(s.t, f, s.h.program) + vaddr}
}

func (s files) ThreadDB() (tlsresolve.ThreadDB, uint64, error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", s.h.pid))
	require.NoError(s.t, err)
	for line := range strings.Lines(string(maps)) {
		if path := line[strings.LastIndexByte(line, ' ')+1:]; strings.HasSuffix(path, "/libc.so.6\n") {
			path = strings.TrimSpace(path)
			f := open(s.t, path)
			db, err := tlsresolve.ReadThreadDB(f)
			return db, s.h.bias(s.t, f, path), err
		}
	}
	return tlsresolve.ThreadDB{}, 0, tlsresolve.ErrNoThreadDB
}

// resolve finds the variable of a file with all that helps.
func (h host) resolve(t *testing.T, path string, others ...string) (tlsresolve.Location, error) {
	t.Helper()
	f := open(t, path)
	plan, err := tlsresolve.NewPlan(f, symbol)
	require.NoError(t, err)
	target := tlsresolve.Target{
		Machine: f.Machine, Libc: tlsresolve.LibcOf(open(t, h.program).Interp()), Modules: tlsresolve.NewModules(files{t, h}),
	}
	for _, other := range others {
		f := open(t, other)
		plan, err := tlsresolve.NewPlan(f, symbol)
		require.NoError(t, err)
		target.Definitions = append(target.Definitions, tlsresolve.Definition{Plan: plan, Bias: h.bias(t, f, other)})
	}
	return plan.Resolve(remote(h.pid), h.bias(t, f, path), target)
}

// Libraries that never use their variable, so that no relocation leads to it.
func TestLiveModuleOnly(t *testing.T) {
	layouts := map[string][]string{
		"first":   {},
		"behind":  {"-DPAD=40"},
		"big":     {"-DPAD=4099", "-DALIGN=64"},
		"aligned": {"-DPAD=1", "-DALIGN=4096"},
	}
	for _, compiler := range []string{corpus.GCC, corpus.MuslGCC} {
		for layout, flags := range layouts {
			for _, startup := range []bool{true, false} {
				for _, link := range []string{"-pie", "-no-pie"} {
					t.Run(fmt.Sprint(compiler, layout, startup, link), func(t *testing.T) {
						t.Parallel()
						library := corpus.Library(t, compiler, append([]string{"-DUNREFERENCED"}, flags...)...)
						args := []string{"host.c", "-DBYNAME", "-pthread", "-ldl", link}
						var programArgs []string
						if startup {
							args = append(args, "-DLINKED", "-Wl,--no-as-needed", library, "-Wl,-rpath,"+filepath.Dir(library))
						} else {
							programArgs = []string{library}
						}
						program := corpus.Build(t, "host", compiler, args...)
						h := start(t, program, nil, programArgs...)
						location, err := h.resolve(t, library)
						require.NoError(t, err)
						kind := record.TLSDTVMusl
						if compiler == corpus.GCC {
							kind = record.TLSDTVGlibc
							if startup {
								kind = record.TLSStatic
							}
						}
						h.checkLocation(t, open(t, library), location, kind, startup)
					})
				}
			}
		}
	}
}

// The definition of the executable has taken the place of the library's and
// stands at another offset of its block: the start, which is what a slot says
// that the loader has not come to.
func TestLiveInterpositionAtStart(t *testing.T) {
	for _, compiler := range []string{corpus.GCC, corpus.MuslGCC} {
		t.Run(compiler, func(t *testing.T) {
			t.Parallel()
			library := corpus.Library(t, compiler, "-DPAD=40")
			program := corpus.Build(t, "host", compiler, "host.c", "variable.c", "-DLINKED", "-pthread", "-rdynamic",
				"-Wl,--no-as-needed", library, "-Wl,-rpath,"+filepath.Dir(library))
			h := start(t, program, nil)
			location, err := h.resolve(t, library, library, program)
			require.NoError(t, err)
			for _, th := range h.threads {
				got, err := location.Address(remote(h.pid), open(t, library).Machine, th.tp)
				require.NoError(t, err)
				if th.address != 0 {
					require.Equal(t, th.address, got, "%s", th.name)
				}
			}
			// Nobody who has said what stands at the start: no answer.
			_, err = h.resolve(t, library)
			require.ErrorIs(t, err, tlsresolve.ErrNotRelocated)
		})
	}
}

// reuse is a running reuse.c. Its host has the addresses of the first library.
type reuse struct {
	host
	second []uint64
	in     io.Writer
	lines  *bufio.Scanner
}

func startReuse(t *testing.T, program string, libraries ...string) *reuse {
	t.Helper()
	cmd := exec.Command(program, libraries...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &reuse{host: host{pid: cmd.Process.Pid, program: program}, in: in, lines: bufio.NewScanner(out)}
}

// half reads what the threads say of one pair of libraries: "other", "main".
func (r *reuse) half(t *testing.T) {
	t.Helper()
	r.threads, r.second = nil, nil
	for r.lines.Scan() && r.lines.Text() != "ready" {
		var th thread
		var second string
		_, err := fmt.Sscan(strings.ReplaceAll(r.lines.Text(), "(nil)", "0"), &th.name, &th.tp, &th.address, &second)
		require.NoError(t, err, r.lines.Text())
		var address uint64
		_, err = fmt.Sscan(second, &address)
		require.NoError(t, err)
		r.threads, r.second = append(r.threads, th), append(r.second, address)
	}
	require.Len(t, r.threads, 2)
}

// A module that takes over the id of an unloaded one: a thread that has not come
// to know it still has the block of the old one.
func TestLiveModuleIDReuse(t *testing.T) {
	for name, flags := range map[string][]string{
		"general-dynamic": {"-DPAD=40"},
		"TLSDESC":         {"-DPAD=4099", "-mtls-dialect=gnu2"},
		"link map":        {"-DPAD=40", "-DUNREFERENCED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var libraries []string
			for range 4 {
				libraries = append(libraries, corpus.Library(t, corpus.GCC, flags...))
			}
			r := startReuse(t, corpus.Build(t, "reuse", corpus.GCC, "reuse.c", "-pthread", "-ldl"), libraries...)
			locate := func(path string) tlsresolve.Location {
				l, err := r.resolve(t, path)
				require.NoError(t, err)
				require.Equal(t, record.TLSDTVGlibc, l.Kind)
				return l
			}
			address := func(l tlsresolve.Location, thread int) (uint64, error) {
				return l.Address(remote(r.pid), open(t, libraries[0]).Machine, r.threads[thread].tp)
			}
			agree := func(want uint64, l tlsresolve.Location, thread int) {
				t.Helper()
				got, err := address(l, thread)
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
			const other, main = 0, 1
			r.half(t)
			before := [2]tlsresolve.Location{locate(libraries[0]), locate(libraries[1])}
			for thread := range r.threads {
				agree(r.threads[thread].address, before[0], thread)
				agree(r.second[thread], before[1], thread)
			}

			_, err := io.WriteString(r.in, "x")
			require.NoError(t, err)
			r.half(t)
			after := [2]tlsresolve.Location{locate(libraries[2]), locate(libraries[3])}
			for i := range after {
				require.Equal(t, before[i].Module, after[i].Module, "the same id")
				require.Greater(t, after[i].Generation, before[i].Generation)
			}
			agree(r.threads[main].address, after[0], main)
			agree(r.second[main], after[1], main)
			for i := range after {
				_, err = address(after[i], other)
				require.ErrorIs(t, err, tlsresolve.ErrStaleModule)
				// That is what keeps from reading the unloaded library's block.
				after[i].Generation = before[i].Generation
				_, err = address(after[i], other)
				require.NoError(t, err)
			}
		})
	}
}

// What a process can and cannot tell about a library without relocations.
func TestLiveModuleUnknown(t *testing.T) {
	library := corpus.Library(t, corpus.GCC, "-DUNREFERENCED")
	h := start(t, corpus.Build(t, "host", corpus.GCC, "host.c", "-DBYNAME", "-pthread", "-ldl"), nil, library)
	f := open(t, library)
	plan, err := tlsresolve.NewPlan(f, symbol)
	require.NoError(t, err)
	bias := h.bias(t, f, library)
	resolve := func(s tlsresolve.ProcessFiles, bias uint64) error {
		_, err := plan.Resolve(remote(h.pid), bias, tlsresolve.Target{Machine: f.Machine, Libc: tlsresolve.Glibc, Modules: tlsresolve.NewModules(s)})
		return err
	}
	require.NoError(t, resolve(files{t, h}, bias))
	// At no place where the loader has put it.
	require.ErrorIs(t, resolve(files{t, h}, bias+1<<12), tlsresolve.ErrNotRelocated)
	err = resolve(partly{files{t, h}, errors.ErrUnsupported, true}, bias)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	err = resolve(partly{files{t, h}, tlsresolve.ErrNoThreadDB, true}, bias)
	require.ErrorIs(t, err, tlsresolve.ErrNoRelocation)
	require.ErrorContains(t, err, "libthread_db")
	err = resolve(partly{files{t, h}, nil, false}, bias)
	require.ErrorIs(t, err, tlsresolve.ErrNoRelocation)
	require.ErrorContains(t, err, "DT_DEBUG")
}

// partly withholds something.
type partly struct {
	files
	err   error
	debug bool
}

func (p partly) ThreadDB() (tlsresolve.ThreadDB, uint64, error) {
	if p.err != nil {
		return tlsresolve.ThreadDB{}, 0, p.err
	}
	return p.files.ThreadDB()
}

func (p partly) DebugAddresses() []uint64 {
	if !p.debug {
		return nil
	}
	return p.files.DebugAddresses()
}
