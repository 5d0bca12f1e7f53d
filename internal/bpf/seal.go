//go:build linux && (amd64 || arm64)

package bpf

import (
	"unsafe"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// What is set for a key is sealed, so that the programs know a copy of it for the key's and
// whole: src/seal.bpf.h says why, and makes the same seals.

func sealProcess(id *record.ProcessID, e *record.ProcessEntry) {
	words := wordsOf(e)
	e.Seal = seal(seal(0, wordsOf(id)), words[:len(words)-1])
}

func sealSources[K record.ProcessID | record.FileKey](key *K, l *record.LabelSources) {
	l.Seal = seal(seal(0, wordsOf(key)), wordsOf(l)[:unsafe.Offsetof(l.Seal)/8])
	for i := range l.Count {
		l.Seal = seal(l.Seal, wordsOf(&l.Source[i]))
	}
}

func sealRuntime(id *record.ProcessID, r *record.RuntimeProcess) {
	r.Seal = record.Mix(seal(0, wordsOf(id)), uint64(r.Kind))
	switch r.Kind {
	case record.RuntimeCPython:
		r.Seal = seal(r.Seal, wordsOf(&r.Python))
	case record.RuntimeHotSpot:
		r.Seal = seal(r.Seal, wordsOf(&r.HotSpot))
	case record.RuntimeV8:
		r.Seal = seal(r.Seal, wordsOf(&r.V8))
	}
}

func sealRows(file *record.FileKey, r *record.KnownRows) {
	words := wordsOf(r)
	r.Seal = seal(seal(0, wordsOf(file)), words[:len(words)-1])
}

func seal(hash uint64, words []uint64) uint64 {
	for _, w := range words {
		hash = record.Mix(hash, w)
	}
	return hash
}

// wordsOf returns what of is made of. The structs of package record have whole words and no
// gaps.
func wordsOf[T any](of *T) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(of)), unsafe.Sizeof(*of)/8)
}
