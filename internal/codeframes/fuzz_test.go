package codeframes_test

import (
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/customlabels/otelcol-customlabels/internal/codeframes"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fuzz"
)

const fuzzBase = 0x1000

// FuzzRows follows hostile code. The first byte says of which machine, and where a second
// region begins; the next two where functions begin.
func FuzzRows(f *testing.F) {
	var seeds [][]byte
	for _, c := range codeCases {
		flags := byte(0)
		if c.machine == elf.EM_AARCH64 {
			flags = 1
		}
		seeds = append(seeds, append([]byte{flags, 0, 8}, c.code...), append([]byte{flags | 2, 4, 0}, c.code...))
	}
	fuzz.Run(f, seeds, func(t testing.TB, data []byte) {
		if len(data) < 4 || len(data) > 16<<10 {
			return
		}
		c := codeframes.Code{Machine: elf.EM_X86_64, Functions: []uint64{fuzzBase + uint64(data[1]), fuzzBase + uint64(data[2]), 1 << 63}}
		if data[0]&1 != 0 {
			c.Machine = elf.EM_AARCH64
		}
		code := data[3:]
		split := len(code)
		if data[0]&2 != 0 {
			split = len(code) / 2 &^ 3
		}
		for _, r := range [2]codeframes.Region{{Start: fuzzBase, Code: code[:split]}, {Start: fuzzBase + 64<<10, Code: code[split:]}} {
			if len(r.Code) > 0 {
				c.Regions = append(c.Regions, r)
			}
		}
		rows, err := codeframes.Rows(&c)
		if err != nil {
			t.Fatal(err)
		}
		last := uint64(0)
		for _, r := range rows {
			if r.Start < last || r.End <= r.Start || r.Rule == (record.UnwindRule{}) {
				t.Fatalf("row %+v behind %#x", r, last)
			}
			inside := false
			for _, region := range c.Regions {
				inside = inside || r.Start >= region.Start && r.End <= region.Start+uint64(len(region.Code))
			}
			if !inside {
				t.Fatalf("row %+v is in no region", r)
			}
			last = r.End
		}
	})
}

// arm assembles words.
func arm(words ...uint32) string {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return string(b)
}
