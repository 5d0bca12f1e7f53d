package unwind_test

import (
	"bufio"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/gopclntab"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

const goProgram = `package main

import "fmt"

//go:noinline
func descend(n int) int {
	var a [20]int
	if n == 0 {
		return len(fmt.Sprint(a))
	}
	return descend(n-1) + a[n%20]
}

func main() { go descend(50); fmt.Println(descend(100)) }
`

func buildGo(t *testing.T, arch string) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(source, []byte(goProgram), 0o644))
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "program"), source)
	cmd.Env = append(os.Environ(), "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return filepath.Join(dir, "program")
}

// The rows that are made of a Go program's own table say of the CFA what its
// .debug_frame does, everywhere but where the stack is switched or ends, and
// between the functions.
func TestGoAgreesWithDebugFrame(t *testing.T) {
	for arch, readelf := range map[string]string{"amd64": "readelf", "arm64": "aarch64-linux-gnu-readelf"} {
		t.Run(arch, func(t *testing.T) {
			path := buildGo(t, arch)
			special := switching(t, path)
			rows := table(t, path)
			require.Greater(t, rows.Stats.GoFunctions, 1000)
			checked, interrupted, moved, trampolines := 0, 0, 0, map[uint64]bool{}
			debugFrame(t, readelf, path, func(vaddr uint64, cfa, ra string) {
				if special(vaddr) || strings.Contains(cfa, "-") || cfa == "rsp+0" {
					return // to another stack, or back: assembler that leaves by a jump
				}
				r, ok := rows.Lookup(vaddr)
				require.True(t, ok)
				if r.CFA == record.CFASignal {
					trampolines[vaddr] = true
					return
				}
				if r.RA&record.RAInterrupted != 0 {
					interrupted++
					r.RA &^= record.RAInterrupted
					if arch == "arm64" { // where the handler has saved x30
						r.CFAOffset -= 16
						if r.RA == record.RAOffset {
							r.RAOffset += 16
							require.Equal(t, r.RAOffset-8, r.FPOffset+16)
						}
					}
				}
				got := fmt.Sprintf("rsp+%d", r.CFAOffset)
				if arch == "arm64" {
					got = fmt.Sprintf("sp+%d", r.CFAOffset)
				}
				if r.CFA != record.CFASP || got != cfa {
					t.Errorf("%#x: %+v, not CFA %s", vaddr, r, cfa)
				}
				want := "c" + strconv.Itoa(int(r.RAOffset))
				if r.RA == record.RARegister {
					want = "s"
				} else if arch == "arm64" && r.RAOffset > -r.CFAOffset { // TestGoAssembled
					moved++
					return
				}
				require.Equal(t, want, ra, "%#x", vaddr)
				checked++
			})
			require.Greater(t, checked, 5000)
			require.Greater(t, interrupted, 5)
			require.Less(t, interrupted, 100)
			require.Less(t, moved, 100)
			require.Equal(t, arch == "arm64", moved > 0)
			for _, name := range []string{"runtime.asyncPreempt.abi0", "runtime.sigpanic"} {
				r, ok := rows.Lookup(symbol(t, path, name))
				require.True(t, ok)
				require.NotZero(t, r.RA&record.RAInterrupted, name)
				r, ok = rows.Lookup(symbol(t, path, name) - 1)
				require.True(t, ok)
				require.Zero(t, r.RA&record.RAInterrupted, name)
			}
			if arch == "amd64" { // on aarch64 it is the kernel's
				require.Contains(t, trampolines, symbol(t, path, "runtime.sigreturn__sigaction.abi0"))
			}
			require.LessOrEqual(t, len(trampolines), 2)
			r, ok := rows.Lookup(symbol(t, path, "runtime.sigtramp.abi0") + 32)
			require.True(t, ok)
			require.Equal(t, record.CFASP, r.CFA, "the stack of a signal handler goes on")
			r, ok = rows.Lookup(symbol(t, path, "runtime.goexit.abi0"))
			require.True(t, ok)
			require.Equal(t, record.CFAEnd, r.CFA)
		})
	}
}

// Where C calls Go, aarch64 has the caller's registers at the top of the frame, as in
// runtime/cgo/asm_arm64.s. Other functions have them at the bottom, and below it, of the frame that they have at
// first: also where they move the stack pointer for what they call.
func TestGoAssembled(t *testing.T) {
	const frame = `
	SUB $192, RSP
	STP (R29, R30), 176(RSP)
	BL ·called(SB)
	LDP 176(RSP), (R29, R30)
	ADD $192, RSP
	RET
`
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module crosscall\n\ngo 1.26\n",
		"main.go": "package main\n\nfunc enter()\n\nfunc main() { enter() }\n",
		"main_arm64.s": `#include "textflag.h"
TEXT ·enter(SB),NOSPLIT,$0-0
	BL crosscall2(SB)
	BL ·other(SB)
	SUB $16, RSP
	BL ·called(SB)
	ADD $16, RSP
	RET
TEXT ·called(SB),NOSPLIT,$0-0
	RET
TEXT crosscall2(SB),NOSPLIT|NOFRAME,$0` + frame + "TEXT ·other(SB),NOSPLIT|NOFRAME,$0" + frame,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	path := filepath.Join(dir, "program")
	cmd := exec.Command("go", "build", "-o", path)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	rows := table(t, path)
	leaf := record.UnwindRule{CFA: record.CFASP, RA: record.RARegister}
	for name, in := range map[string]record.UnwindRule{
		"crosscall2": saved(record.UnwindRule{CFA: record.CFASP, CFAOffset: 192, RAOffset: -8}, -16),
		"main.other": saved(record.UnwindRule{CFA: record.CFASP, CFAOffset: 192, RAOffset: -192}, -200),
	} {
		at := symbol(t, path, name)
		for i, want := range []record.UnwindRule{leaf, in, in, in, in, leaf} {
			got, ok := rows.Lookup(at + 4*uint64(i))
			require.True(t, ok)
			require.Equal(t, want, got, "instruction %d of %s", i, name)
		}
	}
	framed := saved(record.UnwindRule{CFA: record.CFASP, CFAOffset: 16, RAOffset: -16}, -24)
	moved := saved(record.UnwindRule{CFA: record.CFASP, CFAOffset: 32, RAOffset: -16}, -24)
	var seen []record.UnwindRule
	for at := symbol(t, path, "main.enter.abi0"); at < symbol(t, path, "main.called"); at += 4 {
		got, ok := rows.Lookup(at)
		require.True(t, ok)
		seen = append(seen, got)
	}
	require.Equal(t, []record.UnwindRule{leaf, framed, moved, framed, leaf}, slices.Compact(seen))
}

// switching tells the addresses of functions that set the stack pointer, or that
// nothing has called.
func switching(t *testing.T, path string) func(vaddr uint64) bool {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	st, err := f.Stat()
	require.NoError(t, err)
	e, err := elffile.New(f, st.Size())
	require.NoError(t, err)
	tab, err := gopclntab.Find(e)
	require.NoError(t, err)
	r := gopclntab.NewReader(tab, f)
	return func(vaddr uint64) bool {
		fn, ok, err := r.Func(vaddr)
		require.NoError(t, err)
		return !ok || fn.Flags&(gopclntab.SPWrite|gopclntab.TopFrame) != 0
	}
}

// debugFrame visits the rows of .debug_frame but for each FDE's last one, which
// repeats the one before at the last byte.
func debugFrame(t *testing.T, readelf, path string, visit func(vaddr uint64, cfa, ra string)) {
	t.Helper()
	cmd := exec.Command(readelf, "--debug-dump=frames-interp", path)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	described := false
	var last []string
	for s := bufio.NewScanner(out); s.Scan(); {
		fields := strings.Fields(s.Text())
		switch {
		case len(fields) >= 4 && fields[3] == "FDE":
			described, last = true, nil
		case len(fields) >= 4 && fields[3] == "CIE":
			described = false
		case len(fields) >= 3 && described && len(fields[0]) == 16:
			if last != nil {
				vaddr, err := strconv.ParseUint(last[0], 16, 64)
				require.NoError(t, err)
				visit(vaddr, last[1], last[2])
			}
			last = fields
		}
	}
	require.NoError(t, cmd.Wait())
}

// symbol returns the address of a function.
func symbol(t *testing.T, path, name string) uint64 {
	t.Helper()
	out, err := exec.Command("readelf", "-sW", path).Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) == 8 && fields[7] == name {
			vaddr, err := strconv.ParseUint(fields[1], 16, 64)
			require.NoError(t, err)
			return vaddr
		}
	}
	require.Fail(t, "no "+name)
	return 0
}

// C code that Go's linker has put in, of which Go's table has the name only, has the rows of its instructions.
func TestGoForeign(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module foreign\n\ngo 1.26\n",
		"main.go": "package main\n\nimport \"net\"\n\nfunc main() { net.LookupHost(\"localhost\") }\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	cmd := exec.Command("go", "build", "-ldflags=-linkmode=internal", "-tags=netcgo", "-o", "foreign", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=1")
	b, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", b)
	path := filepath.Join(dir, "foreign")
	rows := table(t, path)
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	symbols, err := f.Symbols()
	require.NoError(t, err)
	found := 0
	for _, s := range symbols {
		if strings.HasSuffix(s.Name, "_C2func_getaddrinfo") && elf.ST_TYPE(s.Info) == elf.STT_FUNC && strings.HasPrefix(s.Name, "_cgo") {
			found++
			moved := false
			for at := s.Value; at < s.Value+s.Size; at++ {
				r, ok := rows.Lookup(at)
				moved = moved || ok && r.CFA == record.CFASP && r.CFAOffset > 8
			}
			require.True(t, moved, "%s has no rows", s.Name)
		}
	}
	require.NotZero(t, found)
}
