//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/test/vm/internal/guest"
)

func TestCells(t *testing.T) {
	all, err := choose(nil)
	require.NoError(t, err)
	names := map[string]bool{}
	for i := range all {
		names[all[i].name()] = true
	}
	require.Len(t, names, len(all))
	for _, arch := range architectures {
		for _, series := range []string{"5.10", "6.1", "6.12", "newest"} {
			require.Contains(t, names, arch+"-"+series)
		}
	}
	require.Contains(t, names, "arm64-6.1-pac")
	require.Contains(t, names, "arm64-6.12-16k")
	require.Contains(t, names, "amd64-6.1-128cpus")

	one, err := choose([]string{"arm64-6.12"})
	require.NoError(t, err)
	require.Len(t, one, 1)
	_, err = choose([]string{"arm64-6.13"})
	require.ErrorContains(t, err, `no cell "arm64-6.13": amd64-5.10 `)
}

// Whatever cells come first, what each guest runs is built.
func TestGoals(t *testing.T) {
	all, err := choose(nil)
	require.NoError(t, err)
	require.ElementsMatch(t, []goal{{"amd64", "all"}, {"arm64", "all"}, {"arm64", "stacks-java25"}, {"arm64", "stacks-java21"}}, goals(all))
	for i := range all {
		require.Equal(t, strings.Contains(strings.Join(arguments(&all[i], "result"), " "), "/runtimes:/ "),
			strings.HasPrefix(all[i].goal().name, "stacks-java"), all[i].name())
		all[i].quick = true
	}
	require.ElementsMatch(t, []goal{{"amd64", "quick"}, {"arm64", "quick"}}, goals(all))
}

// good is what a guest of the cell prints when everything is right.
func good(c *cell) (string, *guest.Result) {
	r := &guest.Result{Release: "6.1.0-1-" + c.arch, PageSize: c.pageSize}
	var out strings.Builder
	fmt.Fprintln(&out, c.says)
	for _, p := range programs(c) {
		if p.labels {
			fmt.Fprintln(&out, "label assertions: 20 in TestOne\r\nlabel assertions: 22 in TestTwo\r")
		}
		for _, test := range p.tests {
			fmt.Fprintf(&out, "--- PASS: %s (0.10s)\r\n", test)
		}
		fmt.Fprint(&out, "PASS\r\n")
		r.Programs = append(r.Programs, guest.Status{})
	}
	return out.String(), r
}

func TestQuick(t *testing.T) {
	chosen, err := choose([]string{"arm64-6.12"})
	require.NoError(t, err)
	c := chosen[0]
	c.quick = true
	require.Len(t, programs(&c), 1)
	require.Contains(t, programs(&c)[0].tests, "TestLabelStates")
	require.Contains(t, strings.Join(arguments(&chosen[0], "result"), " "), "/runtimes:/ ")
	require.NotContains(t, strings.Join(arguments(&c, "result"), " "), "/runtimes:/ ")
	out, r := good(&c)
	r.Release = "6.12.0-1-arm64"
	require.NoError(t, judge(&c, r, out).err)
	require.Error(t, judge(&c, r, strings.Replace(out, "--- PASS: TestLabelStates", "", 1)).err)
}

func TestJudge(t *testing.T) {
	c, err := choose([]string{"arm64-6.1-pac"})
	require.NoError(t, err)
	out, r := good(&c[0])
	o := judge(&c[0], r, out)
	require.NoError(t, o.err)
	require.Equal(t, 4*42, o.assertions)
	require.Equal(t, "6.1.0-1-arm64", o.release)

	for name, tc := range map[string]struct {
		change func(*guest.Result)
		cut    string
		add    string
		want   string
	}{
		"test missing":    {cut: "--- PASS: TestInstant (0.10s)", want: "glibc: TestInstant did not pass"},
		"test skipped":    {add: "    --- SKIP: TestLabelStates/one (0.00s)\n", want: "TestLabelStates/one skipped"},
		"no assertions":   {cut: "label assertions: 20 in TestOne\r\nlabel assertions: 22 in TestTwo\r\n", want: "bpf: no label assertions"},
		"not signed":      {cut: c[0].says, want: "signed return addresses"},
		"program missing": {cut: "PASS\r\n", want: "7 programs ran to their end"},
		"exit code":       {change: func(r *guest.Result) { r.Programs[2].Exit = 1 }, want: "musl: exit code 1"},
		"signal":          {change: func(r *guest.Result) { r.Programs[0].Signal = 6 }, want: "bpf: exit code 134"},
		"pages":           {change: func(r *guest.Result) { r.PageSize = 16 << 10 }, want: "pages of 16384 bytes"},
		"another kernel":  {change: func(r *guest.Result) { r.Release = "6.12.1" }, want: "kernel 6.12.1, want 6.1"},
	} {
		out, r := good(&c[0])
		if tc.change != nil {
			tc.change(r)
		}
		require.Contains(t, out, tc.cut, name)
		out = tc.add + strings.Replace(out, tc.cut, "", 1)
		require.ErrorContains(t, judge(&c[0], r, out).err, tc.want, name)
	}
}

func TestTable(t *testing.T) {
	cells, err := choose(nil)
	require.NoError(t, err)
	var outcomes []outcome
	for i := range cells {
		outcomes = append(outcomes, outcome{cell: cells[i], release: "R", took: 41400 * time.Millisecond, assertions: 100 + i})
	}
	outcomes[3].err = fmt.Errorf("no")
	var b strings.Builder
	require.NoError(t, printTable(&b, outcomes))
	var rows [][]string
	for line := range strings.Lines(b.String()) {
		var columns []string
		for column := range strings.SplitSeq(strings.TrimSpace(line), "  ") {
			if column = strings.TrimSpace(column); column != "" {
				columns = append(columns, column)
			}
		}
		rows = append(rows, columns)
	}
	require.Equal(t, [][]string{
		{"label assertions", "amd64", "arm64"},
		{"5.10", "100, R, 41 s", "101, R, 41 s"},
		{"6.1", "102, R, 41 s", "FAILED, R, 41 s"},
		{"6.1, pointer authentication", "-", "104, R, 41 s"},
		{"6.12", "105, R, 41 s", "106, R, 41 s"},
		{"6.1, 128 CPUs may come", "107, R, 41 s", "-"},
		{"6.12, 16 KiB pages", "-", "108, R, 41 s"},
		{"newest", "109, R, 41 s", "110, R, 41 s"},
	}, rows)
}
