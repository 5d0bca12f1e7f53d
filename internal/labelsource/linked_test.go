//go:build linux

package labelsource

import (
	"debug/elf"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// TestUnconfirmed looks again at places in the DTV of glibc for a while.
func TestUnconfirmed(t *testing.T) {
	const since = int64(1e9)
	for kind, again := range map[record.TLSKind]bool{record.TLSStatic: false, record.TLSDTVGlibc: true, record.TLSDTVMusl: false} {
		seen := map[sourceKey]located{{}: {tlsresolve.Location{Kind: kind}, since}}
		require.Equal(t, again, unconfirmed(seen, since+int64(confirm)-1), "%v", kind)
		require.False(t, unconfirmed(seen, since+int64(confirm)), "%v", kind)
	}
}

func id(inode uint64) procfs.FileID { return procfs.FileID{Inode: inode} }

func TestLoaderOf(t *testing.T) {
	const glibc, musl = "/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1"
	program := func(interp string) executable.Mapping {
		return executable.Mapping{Path: "/p", File: executable.NewFile(id(1), "/p", executable.Facts{Interp: interp, Program: true}, nil)}
	}
	library := func(path string) executable.Mapping {
		return executable.Mapping{Path: path, File: executable.NewFile(id(2), path, executable.Facts{}, nil)}
	}
	for name, tc := range map[string]struct {
		mappings []executable.Mapping
		runs     uint64
		libc     tlsresolve.Libc
		byLoader bool
	}{
		"glibc":                       {[]executable.Mapping{program(glibc), library(glibc)}, 1, tlsresolve.Glibc, false},
		"musl":                        {[]executable.Mapping{{}, program(musl), library("/lib/libc.so")}, 1, tlsresolve.Musl, false},
		"a link to musl's":            {[]executable.Mapping{program(glibc), library(musl)}, 1, tlsresolve.Musl, false},
		"program of a link to musl's": {[]executable.Mapping{library("/usr/lib/libc.so"), program(glibc)}, 2, tlsresolve.Musl, true},
		"static":                      {[]executable.Mapping{program("")}, 1, tlsresolve.UnknownLibc, false},
		"other loader":                {[]executable.Mapping{program("/lib/ld-other.so")}, 1, tlsresolve.UnknownLibc, false},
		"program of glibc's loader":   {[]executable.Mapping{program(glibc), library(glibc)}, 2, tlsresolve.Glibc, true},
		"program of musl's loader":    {[]executable.Mapping{program(musl), library("/usr/lib/libc.so")}, 2, tlsresolve.Musl, true},
		"a library that runs":         {[]executable.Mapping{library("/usr/lib/libother.so")}, 2, tlsresolve.UnknownLibc, false},
		"no mapping of what it runs":  {[]executable.Mapping{library(glibc)}, 1, tlsresolve.UnknownLibc, false},
		"nothing that can be read":    {[]executable.Mapping{{Path: glibc}}, 2, tlsresolve.UnknownLibc, false},
		"loader of a static program?": {[]executable.Mapping{program(""), library("/usr/lib/libc.so")}, 2, tlsresolve.UnknownLibc, false},
	} {
		libc, byLoader := loaderOf(tc.mappings, id(tc.runs))
		require.Equal(t, tc.libc, libc, name)
		require.Equal(t, tc.byLoader, byLoader, name)
	}
}

// TestDebugAddresses looks for DT_DEBUG in the program and nowhere else, unless
// it is not known which file that is.
func TestDebugAddresses(t *testing.T) {
	place := func(inode, bias, debug uint64) executable.Mapping {
		return executable.Mapping{File: executable.NewFile(id(inode), "", executable.Facts{Debug: debug}, nil), Bias: bias, Biased: true}
	}
	unplaced := place(1, 0, 0x10)
	unplaced.Biased = false
	mappings := []executable.Mapping{{}, unplaced, place(1, 0x1000, 0x10), place(1, 0x1000, 0x10), place(2, 0x2000, 0x20), place(3, 0x3000, 0)}
	require.Equal(t, []uint64{0x1010}, (&linked{mappings: mappings, program: id(1)}).DebugAddresses())
	require.Empty(t, (&linked{mappings: mappings, program: id(3)}).DebugAddresses())
	require.Equal(t, []uint64{0x1010, 0x2020}, (&linked{mappings: mappings, program: id(9), byLoader: true}).DebugAddresses())

	var many []executable.Mapping
	for i := range uint64(100) {
		many = append(many, place(i, i<<20, 0x10))
	}
	require.Len(t, (&linked{mappings: many, program: id(1000), byLoader: true}).DebugAddresses(), maxCandidates)
}

// TestThreadDBCandidates bounds the files that are read for their name.
func TestThreadDBCandidates(t *testing.T) {
	var many []executable.Mapping
	for i := range uint64(100) {
		m := executable.Mapping{Path: "/lib/libc.so.6", File: executable.NewFile(id(i), "", executable.Facts{}, nil), Biased: true}
		many = append(many, m, m)
	}
	last := &many[len(many)-1]
	asked := map[*executable.File]bool{}
	threadDB := func(m *executable.Mapping) (db tlsresolve.ThreadDB, err error) {
		asked[m.File] = true
		if m.File != last.File {
			err = tlsresolve.ErrNoThreadDB
		}
		return db, err
	}
	last.Bias, many[len(many)-2].Bias = 7, 7
	_, _, err := (&linked{mappings: many, threadDB: threadDB}).ThreadDB()
	require.Len(t, asked, maxCandidates)
	require.ErrorIs(t, err, tlsresolve.ErrNoThreadDB)
	_, bias, err := (&linked{mappings: many[190:], threadDB: threadDB}).ThreadDB()
	require.NoError(t, err)
	require.EqualValues(t, 7, bias)
	last.Path = "/lib/libother.so"
	many[len(many)-2].Path = last.Path
	_, _, err = (&linked{mappings: many[190:], threadDB: threadDB}).ThreadDB()
	require.ErrorIs(t, err, tlsresolve.ErrNoThreadDB)
}

// TestDefinitions are those of the libraries and of the program that runs.
func TestDefinitions(t *testing.T) {
	file := func(inode uint64, program bool) *executable.File {
		return executable.NewFile(id(inode), "", executable.Facts{Program: program, Plans: []executable.Plan{{ABI: record.ABIV1}, {ABI: record.ABIV0, Err: elffile.ErrNotELF}}}, nil)
	}
	images := []image{{file: file(1, true), bias: 1}, {file: file(2, true), bias: 2}, {file: file(3, false), bias: 3}}
	env := &environment{Process: &Process{Program: id(1)}, target: tlsresolve.Target{Machine: elf.EM_X86_64}}
	biases := func(env *environment, abi record.ABI, images ...image) (b []uint64) {
		for _, d := range definitions(images, abi, env) {
			b = append(b, d.Bias)
		}
		return b
	}
	require.Equal(t, []uint64{1, 3}, biases(env, record.ABIV1, images...))
	require.Empty(t, biases(env, record.ABIV0, images...))
	require.Empty(t, biases(env, record.ABIV1, images[0]), "alone")
	env.byLoader = true
	require.Equal(t, []uint64{1, 2, 3}, biases(env, record.ABIV1, images...))
}
