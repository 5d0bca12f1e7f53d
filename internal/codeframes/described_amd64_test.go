package codeframes_test

import (
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/codeframes"
	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// codeOf reads the executable sections of a file; with its symbols or without.
func codeOf(t testing.TB, path string, symbols bool) *codeframes.Code {
	e, err := elf.Open(path)
	require.NoError(t, err)
	defer e.Close()
	c := &codeframes.Code{Machine: e.Machine, Functions: []uint64{e.Entry}}
	for _, s := range e.Sections {
		if s.Name == ".init" || s.Name == ".text" || s.Name == ".fini" {
			code, err := s.Data()
			require.NoError(t, err)
			c.Regions = append(c.Regions, codeframes.Region{Start: s.Addr, Code: code})
		}
	}
	if !symbols {
		return c
	}
	for _, read := range []func() ([]elf.Symbol, error){e.Symbols, e.DynamicSymbols} {
		all, _ := read()
		for _, s := range all {
			if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Section != elf.SHN_UNDEF && !strings.Contains(s.Name, ".cold") {
				c.Functions = append(c.Functions, s.Value)
			}
		}
	}
	return c
}

// agreement counts bytes of code.
type agreement struct {
	code, same, other, wrong, undescribed int
}

// agree compares rows with what the file's own call frame information says. What one side has
// from another register is not compared.
func agree(t testing.TB, path string, c *codeframes.Code) (a agreement) {
	b, err := os.Open(path)
	require.NoError(t, err)
	defer b.Close()
	info, err := b.Stat()
	require.NoError(t, err)
	e, err := elffile.New(b, info.Size())
	require.NoError(t, err)
	table, err := unwind.New(e, unwind.Limits{CodeBytes: 1})
	require.NoError(t, err)
	for _, r := range c.Regions {
		a.code += len(r.Code)
	}
	rows, err := codeframes.Rows(c)
	require.NoError(t, err)
	last := uint64(0)
	for _, r := range rows {
		require.Less(t, r.Start, r.End)
		require.LessOrEqual(t, last, r.Start)
		last = r.End
		shown := record.UnwindRule{}
		for at := r.Start; at < r.End; at++ {
			want, ok := table.Lookup(at)
			switch {
			case !ok || want.CFA == record.CFANone:
				a.undescribed++
			case want.CFA == r.Rule.CFA && want.CFAOffset == r.Rule.CFAOffset && want.RA != r.Rule.RA:
				a.other++ // the link register is in both places
			case want.CFA != r.Rule.CFA && want.CFA != record.CFAEnd && r.Rule.CFA != record.CFAEnd:
				a.other++
			case want.CFA == r.Rule.CFA && want.CFAOffset == r.Rule.CFAOffset && want.RA == r.Rule.RA && want.RAOffset == r.Rule.RAOffset:
				a.same++
			default:
				a.wrong++
				if want != shown && testing.Verbose() {
					t.Logf("%#x: %+v, described %+v", at, r.Rule, want)
				}
				shown = want
			}
		}
	}
	t.Logf("%s: %+v", path, a)
	return a
}

// What compilers say of their code is what comes of following it, in all but some bytes in a
// thousand: where assembler is described wrongly, for instance.
func TestAgreesWithDescriptions(t *testing.T) {
	for _, c := range []struct {
		path           string
		symbols        bool
		covered, wrong float64 // shares
	}{
		{"/bin/bash", true, 0.8, 0.001},
		{"/bin/bash", false, 0.7, 0.003},
		{"/usr/bin/readelf", false, 0.6, 0.003},
		{"/lib/x86_64-linux-gnu/libc.so.6", true, 0.7, 0.005},
		{"/lib/x86_64-linux-gnu/libm.so.6", true, 0.7, 0.001},
		{"/usr/aarch64-linux-gnu/lib/libc.so.6", true, 0.7, 0.005},
		{"/usr/aarch64-linux-gnu/lib/libm.so.6", true, 0.7, 0.001},
		{"/usr/aarch64-linux-gnu/lib/libstdc++.so.6", true, 0.6, 0.005},
	} {
		name := filepath.Base(c.path)
		if !c.symbols {
			name += " without symbols"
		}
		t.Run(name, func(t *testing.T) {
			a := agree(t, c.path, codeOf(t, c.path, c.symbols))
			require.Greater(t, float64(a.same+a.other), c.covered*float64(a.code))
			require.Less(t, float64(a.wrong), c.wrong*float64(a.code))
		})
	}
}
