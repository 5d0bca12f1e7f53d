// SPDX-License-Identifier: Apache-2.0

// Command gopclntab writes what its own runtime knows of each address of its code:
//
//	OFFSET DELTA { TAB function NUL file NUL line NUL startLine }
//
// OFFSET counts from the start of the code. A line holds up to the next one. DELTA is
// the distance of the stack pointer from where it was at entry, -1 behind the code of
// a function. Functions are
// innermost first. It runs no code of its own besides, but has some: calls that are
// inlined into each other, in several files, and methods, closures and type parameters.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"unsafe"
)

// The types of package runtime that the functions below use.
type (
	funcInfo       struct{ function, module unsafe.Pointer }
	inlinedCall    struct{ id, name, parentPC, startLine int32 }
	inlineUnwinder struct {
		f    funcInfo
		tree *[1 << 20]inlinedCall
	}
	inlineFrame struct {
		pc    uintptr
		index int32
	}
	srcFunc struct {
		module    unsafe.Pointer
		name      int32
		startLine int32
		id        uint8
	}
)

//go:linkname findfunc runtime.findfunc
func findfunc(pc uintptr) funcInfo

//go:linkname entry runtime.funcInfo.entry
func entry(f funcInfo) uintptr

//go:linkname funcline1 runtime.funcline1
func funcline1(f funcInfo, pc uintptr, strict bool) (file string, line int32)

//go:linkname pcvalue runtime.pcvalue
func pcvalue(f funcInfo, table uint32, pc uintptr, strict bool) (value int32, start uintptr)

//go:linkname newInlineUnwinder runtime.newInlineUnwinder
func newInlineUnwinder(f funcInfo, pc uintptr) (inlineUnwinder, inlineFrame)

//go:linkname source runtime.(*inlineUnwinder).srcFunc
func source(u *inlineUnwinder, f inlineFrame) srcFunc

//go:linkname nameOf runtime.srcFunc.name
func nameOf(f srcFunc) string

//go:linkname lastmoduledatap runtime.lastmoduledatap
var lastmoduledatap *[32]uintptr

// Words of runtime.moduledata.
const minPC, maxPC, text = 20, 21, 22

// pcsp is the offset of that field in runtime._func.
const pcsp = 16

func main() {
	if len(os.Args) > 1 {
		fmt.Println(outermost(len(os.Args)))
		return
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	m := lastmoduledatap
	last := ""
	for pc := m[minPC]; pc < m[maxPC]; pc++ {
		if line := describe(pc); line != last {
			fmt.Fprintf(out, "%x %s\n", pc-m[text], line)
			last = line
		}
	}
}

// describe returns all but the address.
func describe(pc uintptr) string {
	var b strings.Builder
	f := findfunc(pc)
	if f.function == nil {
		return "0"
	}
	delta, _ := pcvalue(f, *(*uint32)(unsafe.Add(f.function, pcsp)), pc, false)
	fmt.Fprint(&b, delta)
	u, at := newInlineUnwinder(f, pc)
	for {
		s := source(&u, at)
		file, line := funcline1(f, at.pc, false)
		if file == "?" {
			file = ""
		}
		fmt.Fprintf(&b, "\t%s\x00%s\x00%d\x00%d", nameOf(s), file, line, s.startLine)
		if at.index < 0 {
			return b.String()
		}
		_, at = newInlineUnwinder(f, entry(f)+uintptr(u.tree[at.index].parentPC))
	}
}
