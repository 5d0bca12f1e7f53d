//go:build linux

package labelsource

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/target"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// slotMemory is a process in which every TLS slot has this module, and every int is 1.
type slotMemory struct{ module uint64 }

func (m *slotMemory) ReadAt(p []byte, _ uint64) error {
	clear(p)
	if len(p) == 4 {
		p[0] = 1
		return nil
	}
	binary.LittleEndian.PutUint64(p, m.module)
	return nil
}

// libraryImage is a library at a place in a process, with the mappings that show it.
func libraryImage(t *testing.T, source string, bias, inode uint64) (im image, mappings []procfs.Mapping) {
	t.Helper()
	dialect := "gnu" // a module and an offset in each slot, not a descriptor
	if HostMachine() == elf.EM_AARCH64 {
		dialect = "trad"
	}
	path := target.Library(t, source, "custom_labels_current_set", "-mtls-dialect="+dialect)
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	stat, err := file.Stat()
	require.NoError(t, err)
	facts, err := executable.ReadFacts(t.Context(), file, stat.Size())
	require.NoError(t, err)
	im = image{file: executable.NewFile(procfs.FileID{Inode: inode}, path, facts, nil), bias: bias, dev: 1, inode: inode}
	for _, s := range facts.Layout.Loads {
		start := (im.bias + s.Vaddr) &^ 0xfff
		mappings = append(mappings, procfs.Mapping{
			Start: start, Limit: (im.bias + s.Vaddr + s.Memsz + 0xfff) &^ 0xfff, Offset: s.Offset &^ 0xfff, Dev: im.dev, Inode: im.inode,
		})
	}
	return im, mappings
}

// A place that the loader has filled in is believed when it has been the same for a while,
// and only if the whole library is mapped: until then its slots show something else.
func TestSourceSettles(t *testing.T) {
	im, mappings := libraryImage(t, target.DefineV1, 0x10000000, 2)
	memory := &slotMemory{module: 1}
	env := &environment{
		Process: &Process{Memory: memory, Files: mappings, NowNs: 1e9},
		target:  tlsresolve.Target{Machine: HostMachine(), Libc: tlsresolve.Musl},
	}
	var r Resolver
	at := func(after time.Duration) ([]record.LabelSource, Status, bool) {
		env.NowNs += int64(after)
		sources, statuses, retry := r.resolve([]image{im}, env)
		require.Len(t, statuses, 1)
		return sources, statuses[0], retry
	}
	unsettled := func(err error, after time.Duration) {
		t.Helper()
		sources, status, retry := at(after)
		require.Empty(t, sources)
		require.Equal(t, NotRelocated, status.State)
		require.Equal(t, err.Error(), status.Err)
		require.True(t, retry)
	}
	active := func(module uint64, after time.Duration) {
		t.Helper()
		sources, status, _ := at(after)
		require.Equal(t, Active, status.State, status.Err)
		require.Equal(t, []record.LabelSource{{ABI: record.ABIV1, Kind: record.TLSDTVMusl, Module: module}}, sources)
	}
	env.Files = mappings[:len(mappings)-1]
	unsettled(errIncomplete, 0)
	unsettled(errIncomplete, settle)
	env.Files = mappings
	unsettled(errSettling, 0)
	unsettled(errSettling, settle-1)
	active(1, 1)
	memory.module = 2
	unsettled(errSettling, settle)
	active(2, settle)

	// What others of the program have there is no chance.
	memory.module = 3
	env.Presumed = []record.LabelSource{{ABI: record.ABIV1, Kind: record.TLSDTVMusl, Module: 3}}
	active(3, 0)
}

// A library whose slot says what its file does is found beside another one that defines the variable elsewhere, also
// where the C library does not say which module is which (glibc before 2.34): a little later, as the loader may just
// be filling the slot.
func TestSecondDefinition(t *testing.T) {
	first, mappings := libraryImage(t, target.DefineV1, 0x10000000, 2)
	second, others := libraryImage(t, "__thread long before = 1;\n"+target.DefineV1, 0x20000000, 3)
	env := &environment{
		Process: &Process{Memory: &slotMemory{module: 1}, Files: append(mappings, others...), NowNs: 1e9},
		target:  tlsresolve.Target{Machine: HostMachine(), Libc: tlsresolve.Glibc, Modules: tlsresolve.NewModules(&linked{})},
	}
	var r Resolver
	own := record.LabelSource{ABI: record.ABIV1, Kind: record.TLSDTVGlibc, Module: 1}
	for _, step := range []struct {
		after time.Duration
		found bool
	}{{0, false}, {settle, false}, {confirm - settle - 1, false}, {1, true}} {
		env.NowNs += int64(step.after)
		sources, _, retry := r.resolve([]image{first, second}, env)
		require.Equal(t, step.found, slices.Contains(sources, own), "%v", sources)
		require.Equal(t, !step.found, retry)
	}
}

// What is found of a process holds for others of its program only if the file itself has the version, which the
// process can have written over.
func TestCertainOfVersion(t *testing.T) {
	const program = "\nint main(void) { custom_labels_current_set = 0; return 0; }\n"
	path := target.Compile(t, "p", target.DefineV1+program, "-rdynamic")
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	stat, err := file.Stat()
	require.NoError(t, err)
	for _, tc := range []struct {
		address bool
		version int64
		certain bool
	}{{true, 1, true}, {true, 99, false}, {true, 0, false}, {true, -1, false}, {false, -1, true}} {
		facts, err := executable.ReadFacts(t.Context(), file, stat.Size())
		require.NoError(t, err)
		require.Len(t, facts.Plans, 1)
		require.EqualValues(t, 1, facts.Plans[0].FileVersion)
		facts.Plans[0].FileVersion = tc.version
		if !tc.address {
			facts.Plans[0].Version = 0
		}
		im := image{file: executable.NewFile(procfs.FileID{}, path, facts, nil), dev: 1, inode: 2}
		var mappings []procfs.Mapping
		for _, s := range facts.Layout.Loads {
			mappings = append(mappings, procfs.Mapping{
				Start: s.Vaddr &^ 0xfff, Limit: (s.Vaddr + s.Memsz + 0xfff) &^ 0xfff, Offset: s.Offset &^ 0xfff, Dev: im.dev, Inode: im.inode,
			})
		}
		var r Resolver
		sources, statuses, _ := r.resolve([]image{im}, &environment{
			Process: &Process{Memory: &slotMemory{}, Files: mappings, NowNs: 1e9}, target: tlsresolve.Target{Machine: HostMachine()},
		})
		require.Len(t, sources, 1, statuses[0].Err)
		require.Equal(t, tc.certain, r.Certain(), "%+v", tc)
	}
}
