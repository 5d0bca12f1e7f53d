package tlsresolve_test

import (
	"debug/elf"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

func TestLocalExecOffset(t *testing.T) {
	const x86, arm = elf.EM_X86_64, elf.EM_AARCH64
	tests := []struct {
		machine                    elf.Machine
		vaddr, memsz, align, value uint64
		want                       int64
	}{
		{x86, 0, 0xa4, 0x40, 0, -192},
		{x86, 0x3df0, 8, 8, 0, -8},
		{x86, 0x3de0, 0x10, 8, 8, -8},
		{x86, 0x3ddc, 0x24, 4, 0x20, -4},
		{x86, 0x3e40, 0x68, 0x40, 0x60, -0x20},
		{x86, 0x3e48, 0x60, 0x40, 0x58, -0x20},     // p_vaddr not aligned
		{x86, 0x4010c0, 0x1000, 1, 0xff8, -8},      // no alignment
		{x86, 0x4010c0, 0x1000, 0, 0xff8, -8},      // 0 means the same
		{x86, ^uint64(0), ^uint64(0), 3, 5, 6 - 2}, // wraps, as in C: 5 + 1 - ((1 + 1) mod 3)
		{arm, 0, 0x40, 64, 8, 72},
		{arm, 0, 0x100, 256, 200, 456},
		{arm, 0x1fd90, 8, 8, 0, 16},
		{arm, 0x1fd90, 0x20, 16, 8, 24},
		{arm, 0x1fd88, 0x20, 16, 8, 32}, // p_vaddr not aligned
		{arm, 0x1fd90, 0x20, 0, 8, 24},
		{arm, 0, 0x40, 1, 0, 16},
		{elf.EM_386, 0, 0x40, 1, 0, 0},
	}
	for _, test := range tests {
		got := tlsresolve.LocalExecOffset(test.machine, test.vaddr, test.memsz, test.align, test.value)
		require.Equal(t, test.want, got, "%+v", test)
	}
}

func TestLibcOf(t *testing.T) {
	tests := map[string]tlsresolve.Libc{
		"/lib64/ld-linux-x86-64.so.2":                      tlsresolve.Glibc,
		"/lib/ld-linux-aarch64.so.1":                       tlsresolve.Glibc,
		"/nix/store/x-glibc-2.40/lib/ld-linux-x86-64.so.2": tlsresolve.Glibc,
		"/lib/x86_64-linux-gnu/ld-2.31.so":                 tlsresolve.Glibc,
		"/lib/ld-musl-x86_64.so.1":                         tlsresolve.Musl,
		"/lib/ld-musl-aarch64.so.1":                        tlsresolve.Musl,
		"/lib/libc.musl-x86_64.so.1":                       tlsresolve.Musl,
		"/usr/lib/x86_64-linux-musl/libc.so":               tlsresolve.UnknownLibc,
		"/system/bin/linker64":                             tlsresolve.UnknownLibc,
		"/ld-musl-fake/ld-linux/x":                         tlsresolve.UnknownLibc,
		"":                                                 tlsresolve.UnknownLibc,
	}
	for path, want := range tests {
		require.Equal(t, want, tlsresolve.LibcOf(path), path)
	}
}

// musl's loader may have the name of glibc's by a link, which the names of mapped files show.
func TestLibcBehind(t *testing.T) {
	const glibc, musl = "/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1"
	for name, test := range map[string]struct {
		interp string
		mapped []string
		want   tlsresolve.Libc
	}{
		"glibc":                    {glibc, []string{"/p", "/lib/libc.so.6", glibc}, tlsresolve.Glibc},
		"glibc, nothing mapped":    {glibc, nil, tlsresolve.Glibc},
		"glibc that has musl's":    {glibc, []string{"/p", musl, "/musl/libc.so", glibc}, tlsresolve.Glibc},
		"glibc's under its number": {glibc, []string{"/p", "/lib/libc-2.31.so", "/lib/ld-2.31.so"}, tlsresolve.Glibc},
		"a link to the loader":     {glibc, []string{"/p", musl}, tlsresolve.Musl},
		"a link to the library":    {glibc, []string{"/p", "/usr/lib/x86_64-linux-musl/libc.so"}, tlsresolve.Musl},
		"musl":                     {musl, []string{"/p", glibc}, tlsresolve.Musl},
		"a link of another name":   {"/opt/app/ld", []string{"/p", glibc}, tlsresolve.Glibc},
		"another name of musl's":   {"/opt/app/ld", []string{"/p", musl}, tlsresolve.Musl},
		"Android":                  {"/system/bin/linker64", []string{"/p", "/apex/com.android.runtime/lib64/bionic/libc.so"}, tlsresolve.UnknownLibc},
		"another name":             {"/opt/app/ld", []string{"/p", "/opt/app/ld"}, tlsresolve.UnknownLibc},
		"static":                   {"", []string{"/p", musl}, tlsresolve.UnknownLibc},
	} {
		require.Equal(t, test.want, tlsresolve.LibcBehind(test.interp, slices.Values(test.mapped)), name)
	}
}
