//go:build linux

package process

import (
	"debug/elf"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
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
	program := func(interp string) ExecMapping {
		return ExecMapping{Path: "/p", File: &File{key: id(1), facts: facts{interp: interp, executable: true}}}
	}
	library := func(path string) ExecMapping {
		return ExecMapping{Path: path, File: &File{key: id(2)}}
	}
	for name, tc := range map[string]struct {
		mappings []ExecMapping
		runs     uint64
		libc     tlsresolve.Libc
		byLoader bool
	}{
		"glibc":                       {[]ExecMapping{program(glibc), library(glibc)}, 1, tlsresolve.Glibc, false},
		"musl":                        {[]ExecMapping{{}, program(musl), library("/lib/libc.so")}, 1, tlsresolve.Musl, false},
		"static":                      {[]ExecMapping{program("")}, 1, tlsresolve.UnknownLibc, false},
		"other loader":                {[]ExecMapping{program("/lib/ld-other.so")}, 1, tlsresolve.UnknownLibc, false},
		"program of glibc's loader":   {[]ExecMapping{program(glibc), library(glibc)}, 2, tlsresolve.Glibc, true},
		"program of musl's loader":    {[]ExecMapping{program(musl), library("/usr/lib/libc.so")}, 2, tlsresolve.Musl, true},
		"a library that runs":         {[]ExecMapping{library("/usr/lib/libother.so")}, 2, tlsresolve.UnknownLibc, false},
		"no mapping of what it runs":  {[]ExecMapping{library(glibc)}, 1, tlsresolve.UnknownLibc, false},
		"nothing that can be read":    {[]ExecMapping{{Path: glibc}}, 2, tlsresolve.UnknownLibc, false},
		"loader of a static program?": {[]ExecMapping{program(""), library("/usr/lib/libc.so")}, 2, tlsresolve.UnknownLibc, false},
	} {
		libc, byLoader := loaderOf(tc.mappings, id(tc.runs))
		require.Equal(t, tc.libc, libc, name)
		require.Equal(t, tc.byLoader, byLoader, name)
	}
}

// TestDebugAddresses looks for DT_DEBUG in the program and nowhere else, unless
// it is not known which file that is.
func TestDebugAddresses(t *testing.T) {
	place := func(inode, bias, debug uint64) ExecMapping {
		return ExecMapping{File: &File{key: id(inode), facts: facts{debug: debug}}, bias: bias, biased: true}
	}
	unplaced := place(1, 0, 0x10)
	unplaced.biased = false
	mappings := []ExecMapping{{}, unplaced, place(1, 0x1000, 0x10), place(1, 0x1000, 0x10), place(2, 0x2000, 0x20), place(3, 0x3000, 0)}
	require.Equal(t, []uint64{0x1010}, (&linked{mappings, id(1), false}).DebugAddresses())
	require.Empty(t, (&linked{mappings, id(3), false}).DebugAddresses())
	require.Equal(t, []uint64{0x1010, 0x2020}, (&linked{mappings, id(9), true}).DebugAddresses())

	var many []ExecMapping
	for i := range uint64(100) {
		many = append(many, place(i, i<<20, 0x10))
	}
	require.Len(t, (&linked{many, id(1000), true}).DebugAddresses(), maxCandidates)
}

// TestThreadDBCandidates bounds the files that are read for their name.
func TestThreadDBCandidates(t *testing.T) {
	var many []ExecMapping
	for i := range uint64(100) {
		f := &File{key: id(i), debugging: threadDB{known: true, err: tlsresolve.ErrNoThreadDB}}
		m := ExecMapping{Path: "/lib/libc.so.6", File: f, biased: true}
		many = append(many, m, m)
	}
	last := &many[len(many)-1]
	last.File.debugging = threadDB{known: true}
	last.bias, many[len(many)-2].bias = 7, 7
	_, _, err := (&linked{mappings: many}).ThreadDB()
	require.ErrorIs(t, err, tlsresolve.ErrNoThreadDB)
	_, bias, err := (&linked{mappings: many[190:]}).ThreadDB()
	require.NoError(t, err)
	require.EqualValues(t, 7, bias)
	last.Path = "/lib/libother.so"
	many[len(many)-2].Path = last.Path
	_, _, err = (&linked{mappings: many[190:]}).ThreadDB()
	require.ErrorIs(t, err, tlsresolve.ErrNoThreadDB)
}

// TestDefinitions are those of the libraries and of the program that runs.
func TestDefinitions(t *testing.T) {
	file := func(inode uint64, executable bool) *File {
		return &File{key: id(inode), facts: facts{executable: executable, plans: []plan{{abi: record.ABIV1}, {abi: record.ABIV0, err: elffile.ErrNotELF}}}}
	}
	images := []image{{file: file(1, true), bias: 1}, {file: file(2, true), bias: 2}, {file: file(3, false), bias: 3}}
	env := &sourceContext{program: id(1), target: tlsresolve.Target{Machine: elf.EM_X86_64}}
	biases := func(env *sourceContext, abi record.ABI, images ...image) (b []uint64) {
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
