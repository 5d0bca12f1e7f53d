package main

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A mutation is one change to one file.
type mutation struct {
	number   uint32 // not 0
	name     string
	file     string // from the root of the repository
	function string // that has the text, as Func or Type.Method; empty: the file has it once
	old, new string
	tests    []testRun
	accepted string // why no test has to notice
	unsure   bool   // one may all the same
	at       string // place in the data
}

// A testRun is a test of one package.
type testRun struct {
	dir    string // of the package, from the root of the repository
	name   string // TestOne or TestOne/sub; empty: all tests
	listed bool   // one of all: it may skip
}

func (t testRun) String() string { return strings.TrimSpace(t.dir + " " + t.name) }

// pattern of -test.run that selects it.
func (t testRun) pattern() string {
	parts := strings.Split(t.name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

func (m *mutation) String() string { return fmt.Sprintf("%s: %q", m.at, m.name) }

// isBPF says whether the mutation is one of the BPF programs.
func (m *mutation) isBPF() bool {
	return strings.HasSuffix(m.file, ".h") || strings.HasSuffix(m.file, ".c")
}

// group under which the table shows it.
func (m *mutation) group() string { return filepath.ToSlash(filepath.Dir(m.file)) }

// readMutations reads all files of a directory, in the order of their names.
//
// A file consists of blocks with empty lines between them. A line of a block is
//
//	mutation: what is wrong with it, a name that no other has
//	file: path
//	in: Func or Type.Method that has the text (the type without a star)
//	tests: directory TestOne TestTwo/sub (more than one such line if it is several
//	       packages; the directory alone for all tests of a package that is quick)
//	accepted: why no test has to notice
//	unsure: why one notices it at times only
//	- old text
//	+ new text; without such a line the old text is left out
//	# comment
//
// A block without a mutation says what holds for those that follow it, up to the next
// such block. How lines are indented does not matter.
func readMutations(dir string) ([]*mutation, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	var all []*mutation
	for _, path := range paths {
		some, err := readFile(path)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	// By name, so that what is compiled changes only with its own mutations.
	numbers := map[uint32]*mutation{}
	for _, m := range all {
		h := fnv.New32a()
		h.Write([]byte(m.name))
		m.number = max(h.Sum32(), 1)
		switch before := numbers[m.number]; {
		case before == nil:
		case before.name == m.name:
			return nil, fmt.Errorf("%v: its name is also that of %s", m, before.at)
		default:
			return nil, fmt.Errorf("%v: another name is needed: its number is also that of %v", m, before)
		}
		numbers[m.number] = m
	}
	return all, nil
}

func readFile(path string) ([]*mutation, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var (
		all      []*mutation
		defaults mutation
		block    []string
		first    int
		line     int
	)
	end := func() error {
		if len(block) == 0 {
			return nil
		}
		at := fmt.Sprintf("%s:%d", filepath.Base(path), first)
		m, err := parseBlock(block, defaults)
		block = nil
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		if m.name == "" {
			defaults = *m
			return nil
		}
		m.at = at
		all = append(all, m)
		return m.check()
	}
	for s := bufio.NewScanner(f); s.Scan(); {
		line++
		text := strings.TrimRight(s.Text(), " \t")
		switch {
		case text == "":
			if err := end(); err != nil {
				return nil, err
			}
		case strings.HasPrefix(text, "#"):
		default:
			if len(block) == 0 {
				first = line
			}
			block = append(block, text)
		}
	}
	return all, end()
}

func parseBlock(lines []string, defaults mutation) (*mutation, error) {
	m := defaults
	if !slices.ContainsFunc(lines, func(s string) bool { return strings.HasPrefix(s, "mutation:") }) {
		m = mutation{}
	}
	var before, after []string
	own := false // tests replace those of the defaults
	for _, line := range lines {
		if line[0] == '-' || line[0] == '+' {
			text := strings.TrimSpace(line[1:])
			if line[0] == '-' {
				before = append(before, text)
			} else {
				after = append(after, text)
			}
			continue
		}
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "mutation":
			m.name = value
		case "file":
			m.file = value
		case "in":
			m.function = value
		case "accepted":
			m.accepted = value
		case "unsure":
			m.accepted, m.unsure = value, true
		case "tests":
			if !own {
				m.tests, own = nil, true
			}
			m.tests = append(m.tests, parseTests(value)...)
		default:
			return nil, fmt.Errorf("%q is none of mutation, file, in, tests, accepted, unsure, -, +", line)
		}
	}
	m.old, m.new = strings.Join(before, "\n"), strings.Join(after, "\n")
	return &m, nil
}

func parseTests(value string) []testRun {
	fields := strings.Fields(value)
	if len(fields) < 2 {
		return []testRun{{dir: value}}
	}
	var tests []testRun
	for _, name := range fields[1:] {
		tests = append(tests, testRun{dir: fields[0], name: name})
	}
	return tests
}

func (m *mutation) check() error {
	switch {
	case m.file == "":
		return fmt.Errorf("%v: has no file", m)
	case m.old == "":
		return fmt.Errorf("%v: has no old text", m)
	case m.old == m.new:
		return fmt.Errorf("%v: changes nothing", m)
	case len(m.tests) == 0 || m.tests[0].dir == "":
		return fmt.Errorf("%v: has no tests", m)
	}
	return nil
}
