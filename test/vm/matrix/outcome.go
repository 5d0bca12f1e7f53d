//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/customlabels/otelcol-customlabels/test/vm/internal/guest"
)

// An outcome is what a cell has shown.
type outcome struct {
	cell       cell
	release    string
	boots      int
	took       time.Duration
	assertions int // of labels
	err        error
}

var (
	passLine      = regexp.MustCompile(`(?m)^--- PASS: (\S+) `)
	skipLine      = regexp.MustCompile(`(?m)^ *--- SKIP: (\S+) `)
	assertionLine = regexp.MustCompile(`(?m)^label assertions: (\d+) `)
	endLine       = regexp.MustCompile(`(?m)^(PASS|FAIL)\r?$`)
)

func readResult(path string) (*guest.Result, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r guest.Result
	return &r, json.Unmarshal(b, &r)
}

// judge says what a guest that ended in good order has shown.
func judge(c *cell, r *guest.Result, output string) (o outcome) {
	o = outcome{cell: *c, release: r.Release, boots: r.Boots}
	output = strings.ReplaceAll(output, "\r", "")
	var errs []error
	if r.PageSize != c.pageSize {
		errs = append(errs, fmt.Errorf("pages of %d bytes, want %d", r.PageSize, c.pageSize))
	}
	if want := strings.TrimSuffix(c.series, "-16k"); c.series != "newest" && !strings.HasPrefix(r.Release, want+".") {
		errs = append(errs, fmt.Errorf("kernel %s, want %s", r.Release, want))
	}
	if !strings.Contains(output, c.says) {
		errs = append(errs, fmt.Errorf("the output does not have %q", c.says))
	}
	ran := programs(c)
	parts := splitOutput(output)
	if len(parts) != len(ran) || len(r.Programs) != len(ran) {
		return o.failed(errors.Join(append(errs, fmt.Errorf("%d programs ran to their end, want %d", len(parts), len(ran)))...))
	}
	for i := range ran {
		n, err := ran[i].judge(parts[i], r.Programs[i])
		o.assertions += n
		errs = append(errs, err)
	}
	return o.failed(errors.Join(errs...))
}

func (o outcome) failed(err error) outcome {
	o.err = err
	return o
}

// splitOutput cuts the output after the last line of each test binary.
func splitOutput(output string) (parts []string) {
	for {
		end := endLine.FindStringIndex(output)
		if end == nil {
			return parts
		}
		parts = append(parts, output[:end[1]])
		output = output[end[1]:]
	}
}

// judge returns the number of label assertions in the output of one program.
func (p *program) judge(output string, s guest.Status) (assertions int, err error) {
	var errs []error
	if code := s.Code(); code != 0 {
		errs = append(errs, fmt.Errorf("%s: exit code %d", p.name, code))
	}
	passed := map[string]bool{}
	for _, m := range passLine.FindAllStringSubmatch(output, -1) {
		passed[m[1]] = true
	}
	for _, test := range p.tests {
		if !passed[test] {
			errs = append(errs, fmt.Errorf("%s: %s did not pass", p.name, test))
		}
	}
	for _, m := range skipLine.FindAllStringSubmatch(output, -1) {
		errs = append(errs, fmt.Errorf("%s: %s skipped", p.name, m[1]))
	}
	for _, m := range assertionLine.FindAllStringSubmatch(output, -1) {
		n, err := strconv.Atoi(m[1])
		errs = append(errs, err)
		assertions += n
	}
	if p.labels && assertions == 0 {
		errs = append(errs, fmt.Errorf("%s: no label assertions", p.name))
	}
	return assertions, errors.Join(errs...)
}
