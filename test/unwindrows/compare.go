package unwindrows

import (
	"fmt"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// Reasons for which the two may disagree on what is in the table at all.
const (
	ReasonOutside    = "FDE of addresses outside of executable segments, or of removed code: left out"
	ReasonTrampoline = "signal trampoline without an FDE: found by its code"
	ReasonLinkage    = "linkage table without an FDE: by its code"
	ReasonClone      = "system call of clone without an FDE: by its code"
	ReasonContext    = "before what makecontext's functions return to, without an FDE: by its code"
	ReasonOverlap    = "FDE that overlaps another one: the later start wins"
)

// maxDifferences are kept of a file.
const maxDifferences = 20

// Report is the result of a comparison.
type Report struct {
	Starts      int            // addresses compared
	Agree       int            // of those
	Reasons     map[string]int // and these for a reason that is listed
	Differences []string       // the first of the others
	Differ      int
	Uncompared  int // starts of rows in functions of stripped Go programs
}

// Add adds the numbers of another report.
func (r *Report) Add(o *Report) {
	r.Starts, r.Agree, r.Differ = r.Starts+o.Starts, r.Agree+o.Agree, r.Differ+o.Differ
	r.Uncompared += o.Uncompared
	if r.Reasons == nil {
		r.Reasons = map[string]int{}
	}
	for reason, n := range o.Reasons {
		r.Reasons[reason] += n
	}
	r.Differences = append(r.Differences, o.Differences...)
}

func (r *Report) count(reason string) { r.Reasons[reason]++ }

func (r *Report) differ(format string, args ...any) {
	if r.Differ++; len(r.Differences) < maxDifferences {
		r.Differences = append(r.Differences, fmt.Sprintf(format, args...))
	}
}

// view is a table with what else is known of its file.
type view struct {
	table   *unwind.Table
	text    []elffile.Segment // executable ones
	linkage []elffile.Section
	golang  []goRange
}

// inLinkage reports whether an address is in a linkage table.
func (v *view) inLinkage(vaddr uint64) bool {
	return slices.ContainsFunc(v.linkage, func(s elffile.Section) bool { return vaddr >= s.Addr && vaddr-s.Addr < s.Size })
}

// executable reports whether addresses may be executed.
func (v *view) executable(start, end uint64) bool {
	return slices.ContainsFunc(v.text, func(s elffile.Segment) bool { return start >= s.Vaddr && end <= s.Vaddr+s.Filesz })
}

// compare compares at each start of a row of either side.
func compare(ref *Reference, v *view) *Report {
	c := comparison{Report: Report{Reasons: map[string]int{}}, ref: ref, view: v}
	c.starts()
	for _, f := range ref.sorted() {
		if f.start == f.end {
			continue
		}
		if f.start == 0 || !v.executable(f.start, f.end) {
			c.Starts++
			c.count(ReasonOutside)
			continue
		}
		if len(c.kept) > 0 && c.kept[len(c.kept)-1].end > f.start {
			c.count(ReasonOverlap)
			c.kept[len(c.kept)-1].end = f.start
		}
		c.kept = append(c.kept, f)
	}
	c.functions()
	return &c.Report
}

// comparison is one in progress.
type comparison struct {
	Report
	*view
	ref  *Reference
	kept []*function // in the order of addresses, without overlaps
	ours []uint64    // starts of the table's rows, in ascending order
}

func (c *comparison) starts() {
	c.ours = make([]uint64, 0, len(c.table.Rows))
	c.table.Each(func(vaddr uint64, _ record.UnwindRule) bool {
		c.ours = append(c.ours, vaddr)
		return true
	})
	if !slices.IsSorted(c.ours) || len(slices.Compact(slices.Clone(c.ours))) != len(c.table.Rows) {
		c.differ("rows out of order")
	}
}

// functions compares at all starts of rows.
func (c *comparison) functions() {
	next := 0 // start of ours
	for i, f := range c.kept {
		// What lies before the function is in none.
		for ; next < len(c.ours) && c.ours[next] < f.start; next++ {
			c.gap(c.ours[next])
		}
		rows := f.rows
		if len(rows) == 0 || rows[0].addr > f.start {
			rows = append([]located{{f.start, f.cie.row}}, rows...)
		}
		for j, r := range rows {
			to := f.end
			if j+1 < len(rows) {
				to = min(to, rows[j+1].addr)
			}
			if r.addr >= to {
				continue // nothing to describe, or described by an overlapping one
			}
			want := c.ref.expect(f, r.row)
			c.address(r.addr, want, f, r.row)
			for ; next < len(c.ours) && c.ours[next] < to; next++ {
				if c.ours[next] != r.addr {
					c.address(c.ours[next], want, f, r.row)
				}
			}
		}
		if i+1 == len(c.kept) || c.kept[i+1].start > f.end {
			c.gap(f.end)
			if next < len(c.ours) && c.ours[next] == f.end {
				next++
			}
		}
	}
	for ; next < len(c.ours); next++ {
		c.gap(c.ours[next])
	}
}

// address compares at one address in a function.
func (c *comparison) address(vaddr uint64, want expected, f *function, r row) {
	c.Starts++
	got, ok := c.table.Lookup(vaddr)
	if g, golang := c.goFunction(vaddr); golang && !slices.Contains(want.rules, got) {
		if reason, ok := c.goAddress(g, got, want); ok {
			c.count(reason)
			return
		}
	}
	switch {
	case !ok || !slices.Contains(want.rules, got):
		c.differ("%#x in [%#x, %#x) %s: readelf %+v, table %+v", vaddr, f.start, f.end, f.cie.augmentation, r, got)
	case want.reason != "" && (got.CFA == record.CFANone || got.FP == record.FPUndefined):
		c.count(want.reason)
	default:
		c.Agree++
	}
}

// gap compares at an address that no function has.
func (c *comparison) gap(vaddr uint64) {
	if _, golang := c.goFunction(vaddr); golang {
		c.Uncompared++
		return
	}
	c.Starts++
	got, _ := c.table.Lookup(vaddr)
	switch {
	case got.CFA == record.CFANone:
		c.Agree++
	case got.CFA == record.CFASignal:
		c.count(ReasonTrampoline)
	case c.inLinkage(vaddr):
		c.count(ReasonLinkage)
	case got == (record.UnwindRule{CFA: record.CFASP, CFAOffset: 8, RAOffset: -8}) && c.Reasons[ReasonClone] < c.table.Stats.Clones:
		c.count(ReasonClone)
	case got == (record.UnwindRule{CFA: record.CFAEnd}) && c.Reasons[ReasonClone]+c.Reasons[ReasonContext] < c.table.Stats.Clones:
		c.count(ReasonContext)
	default:
		c.differ("%#x in no function: table %+v", vaddr, got)
	}
}
