package tlsresolve_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fakemem"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fuzz"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// fuzzBiases are what is added to the file's addresses: none, a library's, and
// one that makes addresses wrap.
var fuzzBiases = [...]uint64{0, loadBias, ^uint64(0xfff)}

// FuzzPlan gives NewPlan, Resolve and Address a hostile file in a hostile
// process.
//
//	[0] C library  [1] load bias  [2] bytes of memory, then these, then the file
func FuzzPlan(f *testing.F) {
	var seeds [][]byte
	for _, compiler := range []string{corpus.GCC, corpus.AArch64GCC} {
		for _, args := range [][]string{{"-DPAD=40"}, {"-DVISIBILITY=hidden"}, {"-ftls-model=initial-exec"}, {"-DSIBLING"}} {
			b := corpus.SmallLibrary(f, compiler, args...)
			for _, mem := range []string{
				string(make([]byte, 24)), string(binary.LittleEndian.AppendUint64(nil, 3)), x86Static + x86Glibc, armStatic + armDynamic,
			} {
				seed := append([]byte{byte(len(seeds)), byte(len(seeds)), byte(len(mem))}, mem...)
				seeds = append(seeds, append(seed, b...))
			}
		}
	}
	var reader bytes.Reader
	fuzz.Run(f, seeds, func(t testing.TB, data []byte) {
		if len(data) < 3 || len(data) < 3+int(data[2]) {
			return
		}
		libc, bias := tlsresolve.Libc(data[0]%3), fuzzBiases[int(data[1])%len(fuzzBiases)]
		mem, file := fakemem.Anywhere(data[3:3+int(data[2])]), data[3+int(data[2]):]
		reader.Reset(file)
		e, err := elffile.New(&reader, int64(len(file)))
		if err != nil {
			return
		}
		plan, err := tlsresolve.NewPlan(e, symbol)
		if err != nil {
			return
		}
		location, err := plan.Resolve(mem, bias, tlsresolve.Target{Machine: e.Machine, Libc: libc})
		if err != nil {
			if location != (tlsresolve.Location{}) {
				t.Fatalf("%+v beside %v", location, err)
			}
			return
		}
		checkLocation(t, plan, e.Machine, libc, location)
		if _, err = location.Address(mem, e.Machine, bias); err != nil && outcomeOf(err) == unknownOutcome {
			t.Fatal(err)
		}
	})
}

// checkLocation holds a location against what any loader could have made. The
// offset of local-exec comes from the file alone, which may say anything.
func checkLocation(t testing.TB, plan tlsresolve.Plan, machine elf.Machine, libc tlsresolve.Libc, l tlsresolve.Location) {
	ok := true
	switch {
	case l.Kind != record.TLSStatic:
		ok = l.Module != 0 && l.Offset >= 0
	case plan.Model() == tlsresolve.LocalExec:
	case machine == elf.EM_X86_64:
		ok = l.Offset < 0
	case libc == tlsresolve.Musl: // puts the first library at the thread pointer
		ok = l.Offset >= 0
	default:
		ok = l.Offset >= 16
	}
	if !ok {
		t.Fatalf("%v: %+v", plan.Model(), l)
	}
}

// outcome is what may become of a look at one thread.
type outcome uint8

const (
	found outcome = iota
	fault
	noThreadPointer
	notAllocated
	stale
	unknownOutcome
)

func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return found
	case errors.Is(err, fakemem.ErrUnmapped):
		return fault
	case errors.Is(err, tlsresolve.ErrNoThreadPointer):
		return noThreadPointer
	case errors.Is(err, tlsresolve.ErrNotAllocated):
		return notAllocated
	case errors.Is(err, tlsresolve.ErrStaleModule):
		return stale
	}
	return unknownOutcome
}
