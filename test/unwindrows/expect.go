package unwindrows

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Reasons for which a Table may say less than readelf.
const (
	ReasonCFAExpression = "CFA expression of a kind that rows have not: no information"
	ReasonCFARegister   = "CFA in a register that is not general: no information"
	ReasonRA            = "return address in another register or by an expression: no information"
	ReasonSP            = "stack pointer that is not the CFA: no information"
	ReasonFP            = "frame register in another register or by an expression: lost"
)

// expected is what a Table should have for a row of readelf's. Several rules
// are possible where readelf does not tell which.
type expected struct {
	rules  []record.UnwindRule
	reason string // why that is less than what readelf prints, or ""
}

var (
	offsetCell = regexp.MustCompile(`^c([+-]\d+)$`)
	cfaCell    = regexp.MustCompile(`^([a-z0-9]+)([+-]\d+)$`)
	derefCFA   = regexp.MustCompile(`^\(DW_OP_breg\d+ \((\w+)\): (-?\d+); DW_OP_deref(?:; DW_OP_plus_uconst: (\d+))?\)$`)
	pltCFA     = regexp.MustCompile(`^\(DW_OP_breg7 \(rsp\): (-?\d+); DW_OP_breg16 \(rip\): 0; DW_OP_lit15; DW_OP_and; DW_OP_lit(\d+); DW_OP_ge; DW_OP_lit3; DW_OP_shl; DW_OP_plus\)$`)
	frameFP    = regexp.MustCompile(`^\(DW_OP_breg\d+ \((?:rbp|x29)\): (-?\d+)\)$`)
)

// x86Registers are readelf's names in the order of DWARF numbers.
var x86Registers = []string{
	"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
}

func general(name string, aarch64 bool) (uint8, bool) {
	if aarch64 {
		n, err := strconv.Atoi(strings.TrimPrefix(name, "x"))
		return uint8(n), err == nil && n <= 30 && strings.HasPrefix(name, "x")
	}
	n := slices.Index(x86Registers, name)
	return uint8(n), n >= 0
}

func number(s string) int32 {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		panic(fmt.Sprintf("offset %q: %v", s, err))
	}
	return int32(n)
}

// expect translates a row of an FDE.
func (ref *Reference) expect(f *function, r row) expected {
	notes := facts{}
	for _, x := range []*facts{f.cie.facts, f.facts} {
		if x != nil {
			notes.cfa, notes.fp = append(notes.cfa, x.cfa...), append(notes.fp, x.fp...)
			notes.undefinedRA, notes.undefinedFP = notes.undefinedRA || x.undefinedRA, notes.undefinedFP || x.undefinedFP
		}
	}
	none := record.UnwindRule{}
	end := record.UnwindRule{CFA: record.CFAEnd}

	var ras []record.UnwindRule // only their RA fields
	reason := ""
	mayEnd := false
	switch m := offsetCell.FindStringSubmatch(string(r.ra)); {
	case m != nil:
		ras = append(ras, record.UnwindRule{RAOffset: number(m[1])})
	case r.ra == "" || r.ra == "u" || r.ra == "s":
		if r.ra == "u" && notes.undefinedRA {
			mayEnd = true
		}
		if ref.aarch64 && f.cie.ra == "ra=30" {
			ras = append(ras, record.UnwindRule{RA: record.RARegister})
		} else if !mayEnd {
			reason = ReasonRA
		}
	default:
		reason = ReasonRA
	}
	if strings.Contains(f.cie.augmentation, "S") {
		return expected{rules: []record.UnwindRule{{CFA: record.CFASignal}}}
	}
	if mayEnd && !ref.aarch64 {
		return expected{rules: []record.UnwindRule{end}}
	}
	switch r.sp {
	case "", "s", "u", "v+0":
	default:
		reason = ReasonSP
	}
	cfas, cfaReason := ref.expectCFA(r.cfa, notes)
	if cfaReason != "" {
		reason = cfaReason
	}
	if reason != "" {
		return expected{rules: []record.UnwindRule{none}, reason: reason}
	}
	fps, reason := ref.expectFP(r.fp, notes)
	e := expected{reason: reason}
	for _, c := range cfas {
		for _, ra := range ras {
			for _, fp := range fps {
				x := c
				x.RA, x.RAOffset, x.FP, x.FPOffset = ra.RA, ra.RAOffset, fp.FP, fp.FPOffset
				e.rules = append(e.rules, x)
			}
		}
	}
	if mayEnd {
		e.rules = append(e.rules, end)
	}
	return e
}

func (ref *Reference) expectCFA(c column, notes facts) (rules []record.UnwindRule, reason string) {
	n := names(ref.aarch64)
	if c != "exp" {
		m := cfaCell.FindStringSubmatch(string(c))
		if m == nil {
			return nil, ReasonCFARegister
		}
		r := record.UnwindRule{CFAOffset: number(m[2])}
		switch m[1] {
		case n.sp:
			r.CFA = record.CFASP
		case n.fp:
			r.CFA = record.CFAFP
		default:
			reg, ok := general(m[1], ref.aarch64)
			if !ok {
				return nil, ReasonCFARegister
			}
			r.CFA, r.Arg = record.CFAReg, reg
		}
		return []record.UnwindRule{r}, ""
	}
	for _, text := range notes.cfa {
		if m := derefCFA.FindStringSubmatch(text); len(m) > 3 && (m[1] == n.sp || m[1] == n.fp) {
			r := record.UnwindRule{CFA: record.CFADerefSP, CFAOffset: number(m[2])}
			if m[1] == n.fp {
				r.CFA = record.CFADerefFP
			}
			if m[3] != "" {
				r.Arg = uint8(number(m[3]))
			}
			rules = append(rules, r)
		} else if m := pltCFA.FindStringSubmatch(text); m != nil {
			rules = append(rules, record.UnwindRule{CFA: record.CFAPLT, CFAOffset: number(m[1]), Arg: uint8(number(m[2]))})
		} else {
			reason = ReasonCFAExpression
		}
	}
	if len(rules) > 0 && reason != "" {
		// One of several expressions: not worth telling which.
		return nil, ReasonCFAExpression
	}
	return rules, reason
}

func (ref *Reference) expectFP(c column, notes facts) (rules []record.UnwindRule, reason string) {
	switch m := offsetCell.FindStringSubmatch(string(c)); {
	case m != nil:
		return []record.UnwindRule{{FP: record.FPOffset, FPOffset: number(m[1])}}, ""
	case c == "" || c == "s":
		return []record.UnwindRule{{}}, ""
	case c == "u":
		rules = []record.UnwindRule{{}}
		if notes.undefinedFP {
			rules = append(rules, record.UnwindRule{FP: record.FPUndefined})
		}
		return rules, ""
	case c == "exp":
		for _, text := range notes.fp {
			if m := frameFP.FindStringSubmatch(text); m != nil {
				rules = append(rules, record.UnwindRule{FP: record.FPFrame, FPOffset: number(m[1])})
			} else {
				reason = ReasonFP
			}
		}
		if reason == "" {
			return rules, ""
		}
	}
	return append(rules, record.UnwindRule{FP: record.FPUndefined}), ReasonFP
}
