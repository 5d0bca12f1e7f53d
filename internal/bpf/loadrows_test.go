//go:build linux && (amd64 || arm64)

package bpf

import (
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// loadRows loads the rows of all files that a process maps, for it and for others that map
// them. The vDSO is one of them: on aarch64 it has what handlers return to.
func loadRows(t *testing.T, s *Sampler, pid uint32) (tables []record.TableID) {
	t.Helper()
	return loadRowsAs(t, s, pid, func(*record.UnwindTable) {})
}

// loadRowsBut loads the rows of all files but one; it returns where they are mapped.
func loadRowsBut(t *testing.T, s *Sampler, pid uint32, file string) []record.UnwindMapping {
	t.Helper()
	_, mappings := loadSomeRows(t, s, pid, func(path string) bool { return path != file }, func(*record.UnwindTable) {})
	return mappings
}

// loadRowsAs loads the rows as change has made them.
func loadRowsAs(t *testing.T, s *Sampler, pid uint32, change func(*record.UnwindTable)) (tables []record.TableID) {
	t.Helper()
	tables, _ = loadSomeRows(t, s, pid, func(string) bool { return true }, change)
	return tables
}

func loadSomeRows(t *testing.T, s *Sampler, pid uint32, wanted func(path string) bool, change func(*record.UnwindTable)) (tables []record.TableID, mappings []record.UnwindMapping) {
	t.Helper()
	fs := procfs.FS{Root: "/proc"}
	for m, err := range fs.Mappings(int(pid)) {
		require.NoError(t, err)
		isVDSO := m.Path == "[vdso]"
		if (m.Inode == 0 && !isVDSO) || m.Perms&procfs.PermExec == 0 || !wanted(m.Path) {
			continue
		}
		path := m.Path
		if isVDSO {
			path = filepath.Join(t.TempDir(), "vdso")
			require.NoError(t, os.WriteFile(path, textOf(t, pid, m.Start, int(m.Limit-m.Start)), 0o600))
		}
		file, err := os.Open(path)
		require.NoError(t, err)
		defer file.Close()
		st, err := file.Stat()
		require.NoError(t, err)
		e, err := elffile.New(file, st.Size())
		require.NoError(t, err)
		rows, err := unwind.New(e, unwind.Limits{})
		if errors.Is(err, unwind.ErrNone) {
			continue
		}
		require.NoError(t, err, m.Path)
		table := &rows.UnwindTable
		change(table)
		id, err := s.AddUnwindTable(table)
		require.NoError(t, err)
		tables = append(tables, id)
		if s.CanNameFiles() {
			var key record.FileKey // the vDSO's
			if !isVDSO {
				key, err = s.NameFile(file)
				require.NoError(t, err)
				require.EqualValues(t, st.Size(), key.Size)
			}
			require.NoError(t, s.SetFileRows(key, id, textsOf(e, rows.Base)))
		}
		var loads []elffile.Segment
		for l := range e.Loads() {
			loads = append(loads, l)
		}
		bias, ok := elffile.LoadBias(e.Machine, loads, m.Start, m.Offset, true)
		require.True(t, ok)
		mappings = append(mappings, record.UnwindMapping{
			Start: m.Start, Limit: m.Limit, Text: bias + rows.Base, Table: id, Blocks: uint32(rows.Blocks()),
		})
	}
	require.NotEmpty(t, mappings)
	require.NoError(t, s.SetUnwindMappings(identify(t, s, pid), mappings, execPages(t, pid)))
	return tables, mappings
}

func textsOf(e *elffile.File, base uint64) (texts []record.FileText) {
	page := uint64(os.Getpagesize())
	for l := range e.Loads() {
		if l.Flags&elf.PF_X != 0 {
			first, limit := l.Offset/page, (l.Offset+l.Filesz+page-1)/page
			texts = append(texts, record.FileText{FirstPage: uint32(first), LimitPage: uint32(limit), Text: int64(base - (l.Vaddr - l.Offset))})
		}
	}
	return texts
}

// execPages is how many pages a process maps executable and not writable.
func execPages(t *testing.T, pid uint32) (pages uint64) {
	t.Helper()
	for m, err := range (procfs.FS{Root: "/proc"}).Mappings(int(pid)) {
		require.NoError(t, err)
		if m.Perms&(procfs.PermExec|procfs.PermWrite) == procfs.PermExec && m.Path != "[vsyscall]" {
			pages += (m.Limit - m.Start) / uint64(os.Getpagesize())
		}
	}
	require.NotZero(t, pages)
	return pages
}
