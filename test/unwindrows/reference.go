package unwindrows

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// column is one cell of readelf's table, as printed: "" for a register that the
// description does not mention.
type column string

// row is a line of readelf's table.
type row struct {
	cfa, ra, fp, sp column
}

// function is an FDE.
type function struct {
	start, end uint64
	cie        *common
	rows       []located
	facts      *facts // nil when the instructions have none
}

type located struct {
	addr uint64
	row  row
}

// common is a CIE.
type common struct {
	augmentation string
	ra           string // "ra=16"
	row          row
	facts        *facts
}

// facts are what only the instructions of a CIE or an FDE tell.
type facts struct {
	cfa, fp                  []string // expressions
	undefinedRA, undefinedFP bool
}

// registers are readelf's names.
type registers struct{ sp, fp, ra, fpColumn, raColumn string }

func names(aarch64 bool) registers {
	if aarch64 {
		return registers{"sp", "x29", "ra", "r29 (x29)", "r30 (x30)"}
	}
	return registers{"rsp", "rbp", "ra", "r6 (rbp)", "r16 (rip)"}
}

// Reference is what readelf prints of a file.
type Reference struct {
	aarch64   bool
	functions []*function // in the order of the section
	Rows      int
}

// Read has readelf print sections (".eh_frame", ".debug_frame") of a file.
func Read(path string, aarch64 bool, sections ...string) (*Reference, error) {
	ref := &Reference{aarch64: aarch64}
	for _, section := range sections {
		byOffset := map[string]any{}
		if err := run(path, "frames-interp", section, ref.interpreted(byOffset)); err != nil {
			return nil, err
		}
		if err := run(path, "frames", section, ref.instructions(byOffset)); err != nil {
			return nil, err
		}
	}
	return ref, nil
}

// run calls line with each line of the section's dump.
func run(path, dump, section string, line func(string) error) error {
	cmd := exec.Command("readelf", "--wide", "--debug-dump="+dump+",no-follow-links", path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = scan(out, section, line)
	_, _ = io.Copy(io.Discard, out)
	if waitErr := cmd.Wait(); err == nil && waitErr != nil {
		err = fmt.Errorf("readelf %s: %w\n%s", path, waitErr, stderr.String())
	}
	return err
}

func scan(r io.Reader, section string, line func(string) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 1<<20), 1<<20)
	inside := false
	for s.Scan() {
		text := s.Text()
		if strings.HasPrefix(text, "Contents of the ") {
			inside = strings.HasPrefix(text, "Contents of the "+section+" section")
			continue
		}
		if !inside || text == "" {
			continue
		}
		if err := line(text); err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
	}
	return s.Err()
}

// interpreted takes up the lines of frames-interp.
func (ref *Reference) interpreted(byOffset map[string]any) func(string) error {
	n := names(ref.aarch64)
	var f *function
	var c *common
	var header []string
	return func(text string) error {
		fields := strings.Fields(text)
		switch {
		case len(fields) > 3 && fields[3] == "CIE":
			quoted, _, _ := strings.Cut(text[strings.IndexByte(text, '"')+1:], "\"")
			c, f = &common{augmentation: quoted, ra: fields[len(fields)-1]}, nil
			byOffset[fields[0]] = c
		case len(fields) > 5 && fields[3] == "FDE":
			of, _ := byOffset[strings.TrimPrefix(fields[4], "cie=")].(*common)
			if of == nil {
				return fmt.Errorf("no such CIE")
			}
			from, to, _ := strings.Cut(strings.TrimPrefix(fields[5], "pc="), "..")
			start, err := strconv.ParseUint(from, 16, 64)
			if err != nil {
				return err
			}
			end, err := strconv.ParseUint(to, 16, 64)
			if err != nil {
				return err
			}
			f, c = &function{start: start, end: end, cie: of}, nil
			ref.functions = append(ref.functions, f)
			byOffset[fields[0]] = f
		case fields[0] == "LOC":
			header = append(header[:0], fields...)
		case len(fields[0]) == 16 && len(fields) >= 2 && fields[1] != "ZERO":
			addr, err := strconv.ParseUint(fields[0], 16, 64)
			if err != nil {
				return err
			}
			// A register is printed in two words, "r8 (r8)".
			fields = slices.DeleteFunc(fields, func(s string) bool { return s[0] == '(' })
			if len(fields) != len(header) {
				return fmt.Errorf("%d columns under %d", len(fields), len(header))
			}
			var r row
			for i, name := range header {
				cell := column(strings.Clone(fields[i]))
				switch name {
				case "CFA":
					r.cfa = cell
				case n.ra:
					r.ra = cell
				case n.fp:
					r.fp = cell
				case n.sp:
					r.sp = cell
				}
			}
			if f == nil {
				c.row = r
				return nil
			}
			f.rows = append(f.rows, located{addr, r})
			ref.Rows++
		}
		return nil
	}
}

// instructions takes up the lines of frames.
func (ref *Reference) instructions(byOffset map[string]any) func(string) error {
	n := names(ref.aarch64)
	var at **facts
	return func(text string) error {
		if text[0] != ' ' {
			fields := strings.Fields(text)
			at = nil
			switch x := byOffset[fields[0]].(type) {
			case *common:
				at = &x.facts
			case *function:
				at = &x.facts
			}
			return nil
		}
		what, rest, _ := strings.Cut(strings.TrimPrefix(text, "  "), ": ")
		var note func(*facts)
		switch what {
		case "DW_CFA_expression":
			if reg, expression, _ := strings.Cut(rest, ") "); reg+")" == n.fpColumn {
				note = func(f *facts) { f.fp = append(f.fp, strings.Clone(expression)) }
			}
		case "DW_CFA_undefined":
			switch rest {
			case n.raColumn:
				note = func(f *facts) { f.undefinedRA = true }
			case n.fpColumn:
				note = func(f *facts) { f.undefinedFP = true }
			}
		default:
			// There is no colon behind the instruction.
			if e, ok := strings.CutPrefix(strings.TrimSpace(text), "DW_CFA_def_cfa_expression "); ok {
				note = func(f *facts) { f.cfa = append(f.cfa, strings.Clone(e)) }
			}
		}
		if note != nil && at != nil {
			if *at == nil {
				*at = &facts{}
			}
			note(*at)
		}
		return nil
	}
}

// sorted returns the FDEs in the order of addresses, of those that start
// at one address the longest, as Table resolves them.
func (ref *Reference) sorted() []*function {
	sorted := slices.Clone(ref.functions)
	slices.SortStableFunc(sorted, func(a, b *function) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	return slices.CompactFunc(sorted, func(a, b *function) bool { return a.start == b.start })
}
