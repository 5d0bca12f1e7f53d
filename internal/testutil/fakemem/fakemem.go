// SPDX-License-Identifier: Apache-2.0

// Package fakemem has memories of processes that do not exist, for tests of what reads them.
package fakemem

import "errors"

// ErrUnmapped is the error of reads of what is not there.
var ErrUnmapped = errors.New("nothing is mapped there")

// Anywhere is memory that has the same bytes again and again, wherever it is read; without
// bytes, nothing is mapped.
type Anywhere []byte

// ReadAt fills p from address addr, or returns ErrUnmapped.
func (m Anywhere) ReadAt(p []byte, addr uint64) error {
	if len(m) == 0 {
		return ErrUnmapped
	}
	for i := range p {
		p[i] = m[(addr+uint64(i))%uint64(len(m))]
	}
	return nil
}

// Words is memory made of 64-bit words at aligned addresses; what is not in it is not mapped.
type Words map[uint64]uint64

// ReadAt fills p from address addr, or returns ErrUnmapped.
func (m Words) ReadAt(p []byte, addr uint64) error {
	for i := range p {
		a := addr + uint64(i)
		w, ok := m[a&^7]
		if !ok {
			return ErrUnmapped
		}
		p[i] = byte(w >> (8 * (a & 7)))
	}
	return nil
}

// A Window is memory with one mapping. Fuzz targets start it at a small address, so that few
// bytes make a pointer into it.
type Window struct {
	Start uint64
	Bytes []byte

	Reads, ReadBytes int // what was asked for
}

// ReadAt fills p from address addr, or returns ErrUnmapped.
func (m *Window) ReadAt(p []byte, addr uint64) error {
	m.Reads++
	m.ReadBytes += len(p)
	at := addr - m.Start
	if addr < m.Start || at > uint64(len(m.Bytes)) || uint64(len(p)) > uint64(len(m.Bytes))-at {
		return ErrUnmapped
	}
	copy(p, m.Bytes[at:])
	return nil
}
