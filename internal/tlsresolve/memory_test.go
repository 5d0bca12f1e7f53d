package tlsresolve_test

import (
	"encoding/binary"

	"github.com/customlabels/otelcol-customlabels/internal/testutil/fakemem"
)

// symbol is the variable of testdata/tls/variable.c.
const symbol = "custom_labels_current_set"

// memory is a process's memory made of 64-bit words at aligned addresses;
// what was never written is not mapped.
type memory map[uint64]uint64

func (m memory) put(addr uint64, words ...uint64) {
	for i, w := range words {
		m[addr+8*uint64(i)] = w
	}
}

// code puts bytes at addr and zeros behind them, as many as are looked at.
func (m memory) code(addr uint64, code string) {
	b := append([]byte(code), make([]byte, 64)...)
	for i := uint64(0); i+8 <= 64; i += 8 {
		m[addr+i] = binary.LittleEndian.Uint64(b[i:])
	}
}

func (m memory) ReadAt(p []byte, addr uint64) error { return fakemem.Words(m).ReadAt(p, addr) }
