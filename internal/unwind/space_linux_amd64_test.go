package unwind_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

const (
	fp = 6 // DWARF numbers
	sp = 7
)

// registers of a frame.
type registers struct {
	ip      uint64
	general [16]uint64 // by DWARF number
	known   bool       // all of them, not only SP and FP
}

// module is an executable mapping.
type module struct {
	start, end uint64
	bias       uint64
	table      *unwind.Table // nil if there is none
	functions  []elffile.Function
}

// space is the memory of a stopped process.
type space struct {
	t       *testing.T
	mem     *os.File
	modules []module
	ended   bool // the last walk reached the outermost frame
	lost    bool // it ended for want of a register
}

func newSpace(t *testing.T, pid int) *space {
	t.Helper()
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	require.NoError(t, err)
	t.Cleanup(func() { mem.Close() })
	s := &space{t: t, mem: mem}
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	require.NoError(t, err)
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var start, end, offset, inode uint64
		var mode, device, path string
		_, _ = fmt.Sscanf(lines.Text(), "%x-%x %s %x %s %d %s", &start, &end, &mode, &offset, &device, &inode, &path)
		if !strings.Contains(mode, "x") || path == "" || path == "[vsyscall]" {
			continue
		}
		s.modules = append(s.modules, s.module(start, end, offset, path))
	}
	return s
}

func (s *space) module(start, end, offset uint64, path string) module {
	var b []byte
	var err error
	if path == "[vdso]" {
		b = make([]byte, end-start)
		_, err = s.mem.ReadAt(b, int64(start))
	} else {
		b, err = os.ReadFile(path)
	}
	require.NoError(s.t, err)
	e, err := elffile.New(bytes.NewReader(b), int64(len(b)))
	require.NoError(s.t, err, "%s", path)
	bias, ok := e.LoadBias(start, offset, true)
	require.True(s.t, ok)
	m := module{start: start, end: end, bias: bias}
	m.table, _ = unwind.New(e, unwind.Limits{})
	require.NoError(s.t, e.Functions(func(f elffile.Function) bool {
		f.Name = bytes.Clone(f.Name)
		m.functions = append(m.functions, f)
		return true
	}))
	// Of several names the global one of the C sources is first.
	slices.SortStableFunc(m.functions, func(a, b elffile.Function) int { return int(int64(a.Value - b.Value)) })
	return m
}

func (s *space) at(addr uint64) *module {
	for i := range s.modules {
		if m := &s.modules[i]; addr >= m.start && addr < m.end {
			return m
		}
	}
	return nil
}

func (s *space) word(addr uint64) uint64 {
	var b [8]byte
	if _, err := s.mem.ReadAt(b[:], int64(addr)); err != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

// function names the function at an address, "" if none is known.
func (s *space) function(addr uint64) string {
	m := s.at(addr)
	if m == nil {
		return ""
	}
	name := ""
	for _, f := range m.functions {
		if addr-m.bias >= f.Value && (addr-m.bias < f.Value+f.Size || f.Size == 0) {
			name = string(f.Name)
		}
	}
	return name
}

// functions names those of a stack.
func (s *space) functions(stack []uint64) []string {
	names := make([]string, len(stack))
	for i, addr := range stack {
		if names[i] = s.function(addr); names[i] == "" && i > 0 {
			names[i] = s.function(addr - 1) // a call that does not return
		}
	}
	return names
}

// unwind returns the addresses of a stack, the interrupted one first. It ends
// where there are no rows.
func (s *space) unwind(r *registers) []uint64 {
	frame, exact := *r, true
	stack := []uint64{frame.ip}
	s.ended, s.lost = false, false
	for len(stack) < 2000 {
		m := s.at(frame.ip)
		if m == nil || m.table == nil {
			return stack
		}
		lookup := frame.ip
		if !exact {
			lookup--
		}
		rule, _ := m.table.Lookup(lookup - m.bias)
		if rule.CFA == record.CFAEnd {
			s.ended = true
			return stack
		}
		var ok bool
		s.lost = rule.CFA == record.CFAReg && !frame.known
		if frame, exact, ok = s.caller(frame, rule); !ok {
			return stack
		}
		stack = append(stack, frame.ip)
	}
	return stack
}

// caller applies a rule.
func (s *space) caller(r registers, rule record.UnwindRule) (c registers, exact, ok bool) {
	cfa := uint64(int64(rule.CFAOffset))
	switch rule.CFA {
	case record.CFASP:
		cfa += r.general[sp]
	case record.CFAFP:
		cfa += r.general[fp]
	case record.CFAReg:
		if !r.known {
			return c, false, false
		}
		cfa += r.general[rule.Arg]
	case record.CFADerefSP:
		cfa = s.word(cfa+r.general[sp]) + uint64(rule.Arg)
	case record.CFADerefFP:
		cfa = s.word(cfa+r.general[fp]) + uint64(rule.Arg)
	case record.CFAPLT:
		cfa += r.general[sp]
		if r.ip&15 >= uint64(rule.Arg) {
			cfa += 8
		}
	case record.CFASignal:
		// struct sigcontext, 40 bytes into struct ucontext, has r8 to r15, rdi,
		// rsi, rbp, rbx, rdx, rax, rcx, rsp, rip.
		for i, reg := range []int{8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7} {
			c.general[reg] = s.word(r.general[sp] + 40 + 8*uint64(i))
		}
		c.ip, c.known = s.word(r.general[sp]+168), true
		return c, true, true
	default:
		return c, false, false
	}
	c.general[sp] = cfa
	switch rule.FP {
	case record.FPSame:
		c.general[fp] = r.general[fp]
	case record.FPOffset:
		c.general[fp] = s.word(cfa + uint64(int64(rule.FPOffset)))
	case record.FPFrame:
		c.general[fp] = s.word(r.general[fp] + uint64(int64(rule.FPOffset)))
	}
	c.ip = s.word(cfa + uint64(int64(rule.RAOffset)))
	return c, rule.RA&record.RAInterrupted != 0, c.ip != 0
}
