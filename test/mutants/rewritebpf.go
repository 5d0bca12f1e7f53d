package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// mutantHeader is included before all else in each BPF program.
const mutantHeader = "const volatile unsigned int mutant; /* 0: none */\n"

// rewriteBPF returns a C file with its mutations compiled in.
func rewriteBPF(source []byte, mutations []*mutation) (string, error) {
	var edits []*edit
	var errs []error
	for _, m := range mutations {
		e, err := editOfC(source, m)
		edits, errs = append(edits, e), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	return apply(source, span{0, len(source)}, edits)
}

// editOfC finds the place of a mutation.
func editOfC(source []byte, m *mutation) (*edit, error) {
	within := span{0, len(source)}
	var err error
	if m.function != "" {
		if within, err = functionOfC(source, m); err != nil {
			return nil, err
		}
	}
	where, err := m.locate(source, within)
	return &edit{m, where, choiceOfC(m)}, err
}

// choiceOfC takes a text that ends as a statement does for one.
func choiceOfC(m *mutation) func(string) string {
	if strings.HasSuffix(m.old, ";") || strings.HasSuffix(m.old, "}") {
		return func(old string) string {
			return fmt.Sprintf("if (mutant == %du) {\n%s\n} else {\n%s\n}", m.number, m.new, old)
		}
	}
	return func(old string) string {
		return fmt.Sprintf("(mutant == %du ? (%s) : (%s))", m.number, m.new, old)
	}
}

// functionOfC finds a definition in kernel style: its name on a line that begins with
// its type, and braces at the start of lines.
func functionOfC(source []byte, m *mutation) (span, error) {
	definition := regexp.MustCompile(`(?m)^\w[^;={}]*\b` + regexp.QuoteMeta(m.function) + `\([^;{}]*\)\n\{(?s:.*?)\n\}`)
	found := definition.FindAllIndex(source, -1)
	if len(found) != 1 {
		return span{}, fmt.Errorf("%v: %s has %d functions of the name %s", m, m.file, len(found), m.function)
	}
	return span{found[0][0], found[0][1]}, nil
}
