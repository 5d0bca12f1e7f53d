package unwind_test

import (
	"debug/elf"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// usual is what CIEs of x86-64 begin with: CFA = rsp + 8, the return address
// below it.
var usual = []byte{0x0c, 7, 8, 0x90, 1}

// rule of a function on x86-64 that has pushed n bytes and saved nothing.
func pushed(n int32) record.UnwindRule {
	return record.UnwindRule{CFA: record.CFASP, CFAOffset: n, RAOffset: -8}
}

func saved(r record.UnwindRule, off int32) record.UnwindRule {
	r.FP, r.FPOffset = record.FPOffset, off
	return r
}

// Each instruction, by the rules that hold at the bytes 0, 1, 2 and so on of a
// function.
func TestInstructions(t *testing.T) {
	const advance = 0x41
	none := record.UnwindRule{}
	for name, c := range map[string]struct {
		initial      []byte // after usual
		instructions []byte
		want         []record.UnwindRule
	}{
		"none":              {want: []record.UnwindRule{pushed(8)}},
		"advance 1":         {instructions: []byte{0x02, 1, 0x0e, 16}, want: []record.UnwindRule{pushed(8), pushed(16)}},
		"advance 2":         {instructions: []byte{0x03, 1, 0, 0x0e, 16}, want: []record.UnwindRule{pushed(8), pushed(16)}},
		"advance 4":         {instructions: []byte{0x04, 1, 0, 0, 0, 0x0e, 16}, want: []record.UnwindRule{pushed(8), pushed(16)}},
		"advance 8":         {instructions: []byte{0x1d, 1, 0, 0, 0, 0, 0, 0, 0, 0x0e, 16}, want: []record.UnwindRule{pushed(8), pushed(16)}},
		"set location":      {instructions: []byte{0x01, 1, 0, 0x40, 0, 0, 0, 0, 0, 0x0e, 16}, want: []record.UnwindRule{pushed(8), pushed(16)}},
		"back":              {instructions: []byte{0x42, 0x0e, 16, 0x01, 1, 0, 0x40, 0, 0, 0, 0, 0, 0x0e, 24}, want: []record.UnwindRule{pushed(8), pushed(8), none}},
		"beyond the end":    {instructions: []byte{0x0e, 16, 0x7f, 0x0e, 24}, want: []record.UnwindRule{none}},
		"unknown":           {instructions: []byte{advance, 0x0e, 16, advance, 0x3f}, want: []record.UnwindRule{pushed(8), pushed(16), none}},
		"cut short":         {instructions: []byte{advance, 0x0e}, want: []record.UnwindRule{pushed(8), none}},
		"offset":            {instructions: []byte{0x86, 2}, want: []record.UnwindRule{saved(pushed(8), -16)}},
		"offset extended":   {instructions: []byte{0x05, 6, 2}, want: []record.UnwindRule{saved(pushed(8), -16)}},
		"offset signed":     {instructions: []byte{0x11, 6, 0x7e}, want: []record.UnwindRule{saved(pushed(8), 16)}},
		"negative offset":   {instructions: []byte{0x2f, 6, 2}, want: []record.UnwindRule{saved(pushed(8), 16)}},
		"offset too far":    {instructions: []byte{0x86, 0x80, 0x80, 0x80, 0x80, 0x02}, want: []record.UnwindRule{{CFA: record.CFASP, CFAOffset: 8, RAOffset: -8, FP: record.FPUndefined}}},
		"of others":         {instructions: []byte{0x83, 2, 0x8c, 3}, want: []record.UnwindRule{pushed(8)}},
		"restore":           {instructions: []byte{0x86, 2, advance, 0xc6}, want: []record.UnwindRule{saved(pushed(8), -16), pushed(8)}},
		"restore initial":   {initial: []byte{0x86, 4}, instructions: []byte{0x86, 2, advance, 0xc6}, want: []record.UnwindRule{saved(pushed(8), -16), saved(pushed(8), -32)}},
		"restore extended":  {initial: []byte{0x86, 4}, instructions: []byte{0x86, 2, advance, 0x06, 6}, want: []record.UnwindRule{saved(pushed(8), -16), saved(pushed(8), -32)}},
		"undefined":         {instructions: []byte{0x86, 2, advance, 0x07, 6}, want: []record.UnwindRule{saved(pushed(8), -16), {CFA: record.CFASP, CFAOffset: 8, RAOffset: -8, FP: record.FPUndefined}}},
		"outermost":         {instructions: []byte{0x07, 16}, want: []record.UnwindRule{{CFA: record.CFAEnd}}},
		"same":              {instructions: []byte{0x86, 2, advance, 0x08, 6}, want: []record.UnwindRule{saved(pushed(8), -16), pushed(8)}},
		"in a register":     {instructions: []byte{0x09, 6, 0}, want: []record.UnwindRule{{CFA: record.CFASP, CFAOffset: 8, RAOffset: -8, FP: record.FPUndefined}}},
		"return elsewhere":  {instructions: []byte{0x09, 16, 2}, want: []record.UnwindRule{none}},
		"remember":          {instructions: []byte{0x0a, 0x0e, 16, 0x86, 2, advance, 0x0b}, want: []record.UnwindRule{saved(pushed(16), -16), pushed(8)}},
		"remember twice":    {instructions: []byte{0x0a, 0x0e, 16, 0x0a, 0x0e, 24, advance, 0x0b, advance, 0x0b}, want: []record.UnwindRule{pushed(24), pushed(16), pushed(8)}},
		"restore nothing":   {instructions: []byte{advance, 0x0b}, want: []record.UnwindRule{pushed(8), none}},
		"def cfa":           {instructions: []byte{0x0c, 6, 16}, want: []record.UnwindRule{{CFA: record.CFAFP, CFAOffset: 16, RAOffset: -8}}},
		"def cfa signed":    {instructions: []byte{0x12, 6, 0x7e}, want: []record.UnwindRule{{CFA: record.CFAFP, CFAOffset: 16, RAOffset: -8}}},
		"cfa register":      {instructions: []byte{0x0d, 6}, want: []record.UnwindRule{{CFA: record.CFAFP, CFAOffset: 8, RAOffset: -8}}},
		"other register":    {instructions: []byte{0x0d, 10}, want: []record.UnwindRule{{CFA: record.CFAReg, Arg: 10, CFAOffset: 8, RAOffset: -8}}},
		"no register":       {instructions: []byte{0x0d, 17}, want: []record.UnwindRule{none}},
		"cfa offset signed": {instructions: []byte{0x13, 0x7e}, want: []record.UnwindRule{pushed(16)}},
		"cfa too far":       {instructions: []byte{0x0e, 0x80, 0x80, 0x80, 0x80, 0x08}, want: []record.UnwindRule{none}},
		"value":             {instructions: []byte{0x14, 6, 2}, want: []record.UnwindRule{{CFA: record.CFASP, CFAOffset: 8, RAOffset: -8, FP: record.FPUndefined}}},
		"value signed":      {instructions: []byte{0x15, 6, 2}, want: []record.UnwindRule{{CFA: record.CFASP, CFAOffset: 8, RAOffset: -8, FP: record.FPUndefined}}},
		"value expression":  {instructions: []byte{0x16, 6, 2, 0x76, 0}, want: []record.UnwindRule{{CFA: record.CFASP, CFAOffset: 8, RAOffset: -8, FP: record.FPUndefined}}},
		"arguments":         {instructions: []byte{0x2e, 16, 0x2d}, want: []record.UnwindRule{pushed(8)}},
		"aligned": {
			instructions: []byte{0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0},
			want:         []record.UnwindRule{{CFA: record.CFADerefFP, CFAOffset: -8, RAOffset: -8, FP: record.FPFrame}},
		},
		"on the stack": {
			instructions: []byte{0x0f, 5, 0x77, 16, 0x06, 0x23, 8},
			want:         []record.UnwindRule{{CFA: record.CFADerefSP, CFAOffset: 16, Arg: 8, RAOffset: -8}},
		},
		"too much added": {instructions: []byte{0x0f, 6, 0x77, 16, 0x06, 0x23, 0x80, 2}, want: []record.UnwindRule{none}},
		"by rbx":         {instructions: []byte{0x0f, 3, 0x73, 16, 0x06}, want: []record.UnwindRule{none}},
		"offset beside an expression": {
			instructions: []byte{0x0f, 3, 0x77, 16, 0x06, 0x0e, 24, advance, 0x0d, 7},
			want:         []record.UnwindRule{{CFA: record.CFADerefSP, CFAOffset: 16, RAOffset: -8}, pushed(24)},
		},
		"linkage table": {
			instructions: []byte{0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22},
			want:         []record.UnwindRule{{CFA: record.CFAPLT, CFAOffset: 8, Arg: 11, RAOffset: -8}},
		},
		"linkage table of 32": {
			instructions: []byte{0x0f, 12, 0x77, 8, 0x80, 0, 0x08, 31, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22},
			want:         []record.UnwindRule{none},
		},
		"stack pointer saved":      {instructions: []byte{0x87, 2, advance, 0xc7}, want: []record.UnwindRule{none, pushed(8)}},
		"stack pointer too far":    {instructions: []byte{0x87, 0x80, 0x80, 0x80, 0x80, 0x02}, want: []record.UnwindRule{none}},
		"stack pointer elsewhere":  {instructions: []byte{0x09, 7, 10}, want: []record.UnwindRule{none}},
		"stack pointer at rsp":     {instructions: []byte{0x10, 7, 2, 0x77, 0}, want: []record.UnwindRule{none}},
		"stack pointer at rbp":     {instructions: []byte{0x10, 7, 2, 0x76, 0}, want: []record.UnwindRule{none}},
		"stack pointer computed":   {instructions: []byte{0x16, 7, 2, 0x77, 0}, want: []record.UnwindRule{none}},
		"stack pointer above":      {instructions: []byte{0x14, 7, 1}, want: []record.UnwindRule{none}},
		"stack pointer of the CFA": {instructions: []byte{0x14, 7, 0, advance, 0x15, 7, 0}, want: []record.UnwindRule{pushed(8), pushed(8)}},
		"stack pointer undefined":  {instructions: []byte{0x07, 7}, want: []record.UnwindRule{pushed(8)}},
		"stack pointer the same":   {instructions: []byte{0x08, 7}, want: []record.UnwindRule{pushed(8)}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newImage(64)
			cie := m.cie("", nil, append(append([]byte{}, usual...), c.initial...))
			m.fde(cie, 0, 8, false, c.instructions...)
			m.fde(cie, 8, 8, false, 0x0e, 32) // not affected
			made, err := m.compile()
			require.NoError(t, err)
			consistent(t, made)
			for i, want := range c.want {
				got, ok := made.Lookup(imageText + uint64(i))
				require.True(t, ok)
				require.Equal(t, want, got, "at %d", i)
			}
			last, _ := made.Lookup(imageText + 7)
			require.Equal(t, c.want[len(c.want)-1], last)
			next, _ := made.Lookup(imageText + 8)
			require.EqualValues(t, 32, next.CFAOffset)
		})
	}
}

func TestInstructionsAArch64(t *testing.T) {
	leaf := record.UnwindRule{CFA: record.CFASP, RA: record.RARegister}
	for name, c := range map[string]struct {
		instructions []byte
		want         record.UnwindRule
	}{
		"leaf":            {nil, leaf},
		"same":            {[]byte{0x08, 30}, leaf},
		"frame":           {[]byte{0x0e, 32, 0x9d, 4, 0x9e, 3}, record.UnwindRule{CFA: record.CFASP, CFAOffset: 32, RAOffset: -24, FP: record.FPOffset, FPOffset: -32}},
		"by x29":          {[]byte{0x0c, 29, 32, 0x9e, 3}, record.UnwindRule{CFA: record.CFAFP, CFAOffset: 32, RAOffset: -24}},
		"by x19":          {[]byte{0x0c, 19, 32, 0x9e, 3}, record.UnwindRule{CFA: record.CFAReg, Arg: 19, CFAOffset: 32, RAOffset: -24}},
		"signed":          {[]byte{0x2d, 0x0e, 32, 0x9e, 3, 0x2d}, record.UnwindRule{CFA: record.CFASP, CFAOffset: 32, RAOffset: -24}},
		"signed by state": {[]byte{0x2b, 1, 0x7c, 0x0e, 32, 0x9e, 3}, record.UnwindRule{CFA: record.CFASP, CFAOffset: 32, RAOffset: -24}},
		"signed with pc":  {[]byte{0x2c, 0x0e, 32, 0x9e, 3}, record.UnwindRule{CFA: record.CFASP, CFAOffset: 32, RAOffset: -24}},
		"restored":        {[]byte{0x9e, 3, 0xde}, leaf},
		"outermost":       {[]byte{0x07, 30}, record.UnwindRule{CFA: record.CFAEnd}},
		"return in x15":   {[]byte{0x09, 30, 15}, record.UnwindRule{}},
		"sp elsewhere":    {[]byte{0x0e, 32, 0x9e, 3, 0x9f, 2}, record.UnwindRule{}},
		"sp is the CFA":   {[]byte{0x0e, 32, 0x9e, 3, 0x14, 31, 0}, record.UnwindRule{CFA: record.CFASP, CFAOffset: 32, RAOffset: -24}},
		"vector register": {[]byte{0x0c, 0x40, 0}, record.UnwindRule{}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newImage(64)
			m.machine = elf.EM_AARCH64
			m.fde(m.cie("zRB", []byte{absolute}, []byte{0x0c, 31, 0}), 16, 16, true, c.instructions...)
			made, err := m.compile()
			require.NoError(t, err)
			got, _ := made.Lookup(imageText + 16)
			require.Equal(t, c.want, got)
		})
	}
}

// glibc's setcontext on x86-64 has the registers of its caller in memory, as rdx says, and the
// stack pointer of it is one of them.
func TestStackPointerInMemory(t *testing.T) {
	for _, c := range []struct {
		sp   []byte
		want record.UnwindRule
		none int
	}{
		{nil, record.UnwindRule{CFA: record.CFAReg, Arg: 1, RAOffset: 168}, 0},
		{[]byte{0x11, 7, 0x6c}, record.UnwindRule{}, 1}, // at 160
	} {
		m := newImage(64)
		m.fde(m.cie("", nil, usual), 16, 16, false, append([]byte{0x0c, 1, 0, 0x11, 16, 0x6b}, c.sp...)...)
		made, err := m.compile()
		require.NoError(t, err)
		got, _ := made.Lookup(imageText + 16)
		require.Equal(t, c.want, got)
		require.Equal(t, c.none, made.Stats.Counts[unwind.ReasonStackPointer])
	}
}

// The rules of glibc's signal trampoline, and such that are not the kernel's.
func TestSignalFrame(t *testing.T) {
	frame := func(fp, sp, ip byte) []byte {
		return []byte{
			0x0f, 4, 0x77, 0xa0, 1, 0x06,
			0x10, 6, 3, 0x77, fp, 0, 0x10, 7, 3, 0x77, sp, 1, 0x10, 16, 3, 0x77, ip, 1,
		}
	}
	fp := byte(120 | 0x80)
	for name, c := range map[string]struct {
		instructions []byte
		want         record.CFAKind
	}{
		"kernel":    {frame(fp, 0xa0, 0xa8), record.CFASignal},
		"no rsp":    {[]byte{0x0f, 4, 0x77, 0xa0, 1, 0x06, 0x10, 6, 3, 0x77, fp, 0, 0x10, 16, 3, 0x77, 0xa8, 1}, record.CFASignal},
		"other rip": {frame(fp, 0xa0, 0xb0), record.CFANone},
		"other rsp": {frame(fp, 0xa8, 0xa8), record.CFANone},
		"other rbp": {frame(112|0x80, 0xa0, 0xa8), record.CFANone},
		"usual":     {nil, record.CFANone},
	} {
		t.Run(name, func(t *testing.T) {
			m := newImage(64)
			m.fde(m.cie("zRS", []byte{absolute}, usual), 16, 16, true, c.instructions...)
			made, err := m.compile()
			require.NoError(t, err)
			got, _ := made.Lookup(imageText + 16)
			require.Equal(t, record.UnwindRule{CFA: c.want}, got)
			if c.want == record.CFANone {
				require.Equal(t, 1, made.Stats.Counts[unwind.ReasonSignal])
			}
		})
	}
}
