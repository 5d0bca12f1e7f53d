package main

import (
	"fmt"
	"regexp"
	"strings"
)

// A span of a file, in bytes.
type span struct{ start, end int }

// locate finds the old text within one span of a file, where it must stand once.
func (m *mutation) locate(source []byte, within span) (span, error) {
	lines := strings.Split(m.old, "\n")
	for i, line := range lines {
		lines[i] = regexp.QuoteMeta(line)
	}
	found := regexp.MustCompile(strings.Join(lines, `\n[ \t]*`)).FindAllIndex(source[within.start:within.end], -1)
	if len(found) != 1 {
		return span{}, fmt.Errorf("%v: %s has the old text %d times where once is right", m, m.place(), len(found))
	}
	return span{within.start + found[0][0], within.start + found[0][1]}, nil
}

func (m *mutation) place() string {
	if m.function == "" {
		return m.file
	}
	return m.file + ", " + m.function
}

// An edit is a mutation at its place.
type edit struct {
	*mutation
	span
	// choice renders the text that chooses between old and new, given old.
	choice func(old string) string
}

// apply renders a span of the source with its edits. Edits may lie within each other:
// then the inner one is part of the outer one's old text.
func apply(source []byte, within span, edits []*edit) (string, error) {
	var out strings.Builder
	at := within.start
	for len(edits) > 0 {
		outer := edits[0]
		for _, e := range edits[1:] {
			if e.start < outer.start || e.start == outer.start && e.end > outer.end {
				outer = e
			}
		}
		var inner, rest []*edit
		for _, e := range edits {
			switch {
			case e == outer:
			case e.start >= outer.start && e.end <= outer.end:
				inner = append(inner, e)
			case e.start >= outer.end:
				rest = append(rest, e)
			default:
				return "", fmt.Errorf("%v and %v overlap: name the function's whole statement in one of them", outer.mutation, e.mutation)
			}
		}
		old, err := apply(source, outer.span, inner)
		if err != nil {
			return "", err
		}
		out.Write(source[at:outer.start])
		out.WriteString(outer.choice(old))
		at, edits = outer.end, rest
	}
	out.Write(source[at:within.end])
	return out.String(), nil
}
