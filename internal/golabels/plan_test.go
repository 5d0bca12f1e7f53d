package golabels

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// future is as long as the version of the programs that are changed.
const future = "go1.99.9"

func planOf(data []byte) (Plan, error) {
	f, err := elffile.New(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return Plan{}, err
	}
	return NewPlan(f)
}

func tableOf(abbrevs []byte) *abbrevTable {
	return &abbrevTable{data: abbrevs, work: func(int) error { return nil }}
}

func read(t *testing.T, path string) []byte {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

// Of every linkage and release: the debug information agrees with the table, and the
// programs without it get the same plan.
func TestPlans(t *testing.T) {
	slots := map[string]int64{"cgo": -88, "cgopie": -88}
	for _, path := range testutil.BuildGoWriters(t) {
		name := strings.TrimPrefix(filepath.Base(path), "gowriter-")
		info, err := buildinfo.ReadFile(path)
		require.NoError(t, err)
		p, err := planOf(read(t, path))
		require.NoError(t, err, name)
		require.Equal(t, info.GoVersion, p.Version)
		require.Equal(t, !strings.HasSuffix(name, "stripped"), p.FromDWARF, name)
		release, ok := minor(p.Version)
		require.True(t, ok)
		want, ok := layoutOfRelease(release)
		require.True(t, ok, "release %d is not in the table", release)
		require.Equal(t, want, p.Layout, name)
		if p.Slot.Register {
			continue // aarch64
		}
		if offset, ok := slots[name]; ok {
			require.Equal(t, offset, p.Slot.Offset, name)
		} else if name != "cgostatic" {
			require.EqualValues(t, -8, p.Slot.Offset, name)
		}
	}
}

// A release that does not exist yet is read by its debug information, and refused
// without.
func TestFutureRelease(t *testing.T) {
	accepted, refused := 0, 0
	for _, path := range testutil.BuildGoWriters(t) {
		data := read(t, path)
		before, err := planOf(data)
		require.NoError(t, err)
		if len(before.Version) != len(future) {
			continue
		}
		changed := bytes.ReplaceAll(data, []byte(before.Version), []byte(future))
		after, err := planOf(changed)
		if !before.FromDWARF {
			require.ErrorIs(t, err, ErrVersion)
			require.ErrorContains(t, err, future)
			refused++
			continue
		}
		require.NoError(t, err)
		before.Version = future
		require.Equal(t, before, after)
		accepted++
	}
	require.NotZero(t, accepted)
	require.NotZero(t, refused)
}

// A stripped program with thread-local variables of C code does not tell where Go's
// is.
func TestUnknownSlot(t *testing.T) {
	checked := 0
	for _, path := range testutil.BuildGoWriters(t) {
		name := filepath.Base(path)
		if name != "gowriter-cgo" && name != "gowriter-cgostatic" {
			continue
		}
		data := read(t, path)
		f, err := elf.NewFile(bytes.NewReader(data))
		require.NoError(t, err)
		for i, s := range f.Sections {
			if s.Type == elf.SHT_SYMTAB {
				// e_shoff + i * sizeof(Elf64_Shdr) + offsetof(sh_type)
				off := int(data[40]) | int(data[41])<<8 | int(data[42])<<16 | int(data[43])<<24
				data[off+64*i+4] = byte(elf.SHT_NULL)
			}
		}
		_, err = planOf(data)
		require.ErrorIs(t, err, ErrSlot, name)
		checked++
	}
	require.Equal(t, 2, checked, "programs with C code")
}

// On aarch64, programs without C code keep the goroutine in a register, even where the
// linker has made a variable for it.
func TestSlotsOfARM64(t *testing.T) {
	for mode, hasVariable := range map[string]bool{"exe": false, "pie": true} {
		path := filepath.Join(t.TempDir(), mode)
		build := exec.Command("go", "build", "-buildvcs=false", "-o", path, "-buildmode="+mode, ".")
		build.Dir = "../../testdata/gowriters"
		build.Env = append(os.Environ(), "GOWORK=off", "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
		text, err := build.CombinedOutput()
		require.NoError(t, err, "%s", text)
		data := read(t, path)
		f, err := elffile.New(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		_, ok := f.TLS()
		require.Equal(t, hasVariable, ok, mode)
		p, err := planOf(data)
		require.NoError(t, err, mode)
		require.Equal(t, Slot{Register: true}, p.Slot, mode)
	}
}

func TestNotGo(t *testing.T) {
	_, err := planOf(read(t, "/bin/ls"))
	require.ErrorIs(t, err, ErrNotGo)
}

func TestMinor(t *testing.T) {
	for version, want := range map[string]int{
		"go1.26": 26, "go1.22.12": 22, "go1.27.1 X:nodwarf5": 27,
		"go1.26rc1": 0, "devel go1.28-abc": 0, "go1.24.1-custom": 0, "go2.1": 0, "": 0, "go1.9999": 0,
	} {
		got, ok := minor(version)
		require.Equal(t, want, got, version)
		require.Equal(t, want != 0, ok, version)
	}
}

// Damaged debug information gives an error or the table's layout, at once.
func FuzzSearch(f *testing.F) {
	f.Add([]byte{1, 0x11, 1, 3, 8, 0, 0, 0}, []byte("\x14\x00\x00\x00\x04\x00\x00\x00\x00\x00\x08\x01runtime\x00\x00\x00\x00\x00"))
	f.Fuzz(func(_ *testing.T, abbrevs, info []byte) {
		t := newTypes()
		if t.search(bytes.NewReader(info), tableOf(abbrevs)) == nil {
			_, _ = t.layout()
		}
	})
}
