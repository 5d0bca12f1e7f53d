// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
)

const (
	// maxInputBytes bounds what mutations can grow an input to.
	maxInputBytes = 16 << 10
	// maxMutations of one input; most have one or two.
	maxMutations = 6
	// maxMoved bounds the bytes that one mutation inserts, deletes or moves.
	maxMoved = 64
)

// mutator makes inputs from a corpus.
type mutator struct {
	r      *rand.Rand
	corpus [][]byte
	buf    []byte
}

func newMutator(seed uint64, corpus [][]byte) *mutator {
	return &mutator{r: rand.New(rand.NewPCG(seed, 0)), corpus: corpus, buf: make([]byte, 0, 2*maxInputBytes)}
}

// next returns an input, valid until the next call.
func (m *mutator) next() []byte {
	m.buf = append(m.buf[:0], m.pick()...)
	for n := 0; n < maxMutations; n++ {
		m.mutate()
		if m.r.Uint32()&1 == 0 {
			break
		}
	}
	if len(m.buf) > maxInputBytes {
		m.buf = m.buf[:maxInputBytes]
	}
	return m.buf
}

func (m *mutator) pick() []byte { return m.corpus[m.r.IntN(len(m.corpus))] }

// below returns a number in [0, n), 0 for n = 0.
func (m *mutator) below(n int) int {
	if n <= 0 {
		return 0
	}
	return m.r.IntN(n)
}

// mutate changes one thing.
func (m *mutator) mutate() {
	b := m.buf
	if len(b) == 0 {
		m.insert(0)
		return
	}
	at := m.r.IntN(len(b))
	switch m.r.IntN(10) {
	case 0:
		b[at] ^= 1 << m.r.IntN(8)
	case 1:
		b[at] = byte(m.r.Uint32())
	case 2:
		b[at] += byte(m.r.IntN(33) - 16)
	case 3, 4, 5:
		m.word(at)
	case 6:
		m.insert(at)
	case 7:
		n := min(m.below(maxMoved)+1, len(b)-at)
		m.buf = slices.Delete(b, at, at+n)
	case 8: // a piece of this input, or of another
		from := b
		if m.r.Uint32()&1 == 0 {
			from = m.pick()
		}
		if len(from) > 0 {
			m.copyPiece(at, from)
		}
	case 9:
		m.buf = b[:at]
	}
}

// copyPiece overwrites what is at a place.
func (m *mutator) copyPiece(at int, from []byte) {
	start := m.r.IntN(len(from))
	n := min(m.below(maxMoved)+1, len(from)-start)
	copy(m.buf[at:], from[start:start+n])
}

func (m *mutator) insert(at int) {
	n := m.below(maxMoved) + 1
	var zeros [maxMoved]byte
	m.buf = append(m.buf, zeros[:n]...)
	copy(m.buf[at+n:], m.buf[at:])
	for i := range n {
		m.buf[at+i] = byte(m.r.Uint32())
	}
}

// word overwrites a little-endian number, mostly where one can be.
func (m *mutator) word(at int) {
	size := 1 << m.r.IntN(4)
	if m.r.IntN(4) != 0 {
		at &^= size - 1
	}
	if at+size > len(m.buf) {
		return
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], m.value())
	copy(m.buf[at:at+size], b[:])
}

// value is a number near an edge: of a type, or of the input's length.
func (m *mutator) value() uint64 {
	var v uint64
	switch m.r.IntN(4) {
	case 0:
		v = uint64(len(m.buf))
	case 1:
		return m.r.Uint64() >> m.r.IntN(64)
	default:
		v = uint64(1) << m.r.IntN(64)
		if m.r.IntN(8) == 0 {
			v = 0
		}
	}
	return v + uint64(m.r.IntN(49)) - 24
}
