package codeframes_test

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/codeframes"
)

// mostCode is as much as is followed of a file.
const mostCode = 3 << 19

// again jumps from the end of code back to its beginning if a flag is set, each time with less
// of a frame that is known: what was followed is followed again.
func again(code string) string {
	for _, less := range []string{"\x53", "\x55", "\x48\x89\xe5", "\x31\xed"} { // push rbx; push rbp; mov rsp, rbp; xor ebp, ebp
		code += less + "\x0f\x84" // je
		code += string(binary.LittleEndian.AppendUint32(nil, uint32(-len(code)-4)))
	}
	return code + "\xc3"
}

// What code costs is bounded by its size, whatever is in it. All that is allocated counts, not
// only what is alive at a time, which would differ from run to run.
func TestBounds(t *testing.T) {
	repeat := func(code string, bytes int) string { return strings.Repeat(code, bytes/len(code)) }
	for _, c := range []struct {
		name, code string
		none       bool // it has no rows
	}{
		{"branches to what is next", repeat("\x74\x00", mostCode) + "\xc3", true},           // je +0
		{"a branch at each byte", repeat("\x70", mostCode) + "\xc3", true},                  // jo +112
		{"ways that come again", again(repeat("\x74\x00", mostCode)), true},                 // je +0
		{"a branch for each call", repeat("\x74\x02\xff\xd0", mostCode) + "\xc3", true},     // je +2; call *rax
		{"calls by address", repeat("\xff\xd0", mostCode) + "\xc3", false},                  // call *rax
		{"returns", repeat("\xc3", mostCode), true},                                         // ret
		{"jumps by address", repeat("\x53\xff\xe0", mostCode), false},                       // push rbx; jmp *rax
		{"rows", repeat("\x50\x58", mostCode) + "\xc3", true},                               // push rax; pop rax
		{"states", repeat("\x48\x83\xec\x08", mostCode) + "\xeb\xfe", true},                 // sub $8, rsp; jmp itself
		{"fewer branches", repeat("\x74\x0c"+repeat("\x90", 12), mostCode) + "\xc3", false}, // je +12; nop
		{"fewer rows", repeat("\x50\x58"+repeat("\x90", 10), mostCode) + "\xc3", false},     // push rax; pop rax; nop
		{"fewer states", repeat("\x48\x83\xec\x08", 64_000) + "\xeb\xfe", false},            // sub $8, rsp; jmp itself
		{"fewer functions", repeat("\xc3"+repeat("\x90", 15), mostCode), false},             // ret; nop
		{"ways to little code", repeat("\x74\x00", 1024) + "\xc3", false},                   // je +0
		{"rows of little code", repeat("\x50\x58", 1024) + "\xc3", false},                   // push rax; pop rax
	} {
		t.Run(c.name, func(t *testing.T) {
			code := codeframes.Code{Machine: elf.EM_X86_64, Entry: start, Regions: []codeframes.Region{{Start: start, Code: []byte(c.code)}}}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			rows, err := codeframes.Rows(&code)
			runtime.ReadMemStats(&after)
			require.NoError(t, err)
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d KiB allocated, %d rows", allocated>>10, len(rows))
			require.Less(t, allocated, uint64(40<<20))
			require.Equal(t, c.none, len(rows) == 0)
		})
	}
}

// Who asks for rows is called meanwhile, and may end it: of what was followed in part there are none.
func TestPace(t *testing.T) {
	text := strings.Repeat("\xc3"+strings.Repeat("\x90", 15), mostCode/16) // ret; nop
	for _, code := range []string{text, strings.Repeat("\x50\x58", mostCode/2) + "\xc3"} {
		for _, last := range []int{1, 2, 5} {
			calls, enough := 0, errors.New("enough")
			code := codeframes.Code{
				Machine: elf.EM_X86_64, Entry: start, Regions: []codeframes.Region{{Start: start, Code: []byte(code)}},
				Pace: func() error {
					if calls++; calls == last {
						return enough
					}
					return nil
				},
			}
			rows, err := codeframes.Rows(&code)
			require.Equal(t, enough, err)
			require.Empty(t, rows)
			require.Equal(t, last, calls)
		}
	}
}
