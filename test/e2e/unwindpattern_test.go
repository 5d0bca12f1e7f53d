//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A frame of a stack, as it was emitted.
type frame struct {
	function string // normalized; "" when it has no name
	mapping  string // file name; "" when it is in none
	address  uint64
	kind     string // profile.frame.type
}

// own tells whether a workload's source has the function; others are foreign.
func (f *frame) own() bool { return strings.HasPrefix(f.function, "w_") }

// An element of a stack that is known: a function, or some foreign ones.
type element struct {
	function string
	optional bool // where it is missing, so are the optional ones that follow
	min, max int  // of foreign functions; max is 0 for a function
}

// A pattern describes a stack from its root; testdata/unwind/truth.h has the words.
type pattern []element

func parsePattern(text string) (pattern, error) {
	var p pattern
	for word := range strings.SplitSeq(text, ";") {
		if word == "" {
			return nil, fmt.Errorf("parse pattern %q: an empty word", text)
		}
		kind, rest := word[0], word[1:]
		switch kind {
		case '@', '%':
			for _, letter := range rest {
				p = append(p, element{function: "w_" + string(letter), optional: kind == '%'})
			}
		case '+':
			p = append(p, element{function: rest, optional: true})
		case '?', '~':
			n, err := strconv.Atoi(rest)
			if err != nil {
				return nil, fmt.Errorf("parse pattern %q: %w", text, err)
			}
			if n > 0 {
				p = append(p, element{min: strings.IndexByte("?~", kind), max: n})
			}
		default:
			p = append(p, element{function: word})
		}
	}
	return p, nil
}

// A verdict is what a stack comes to.
type verdict int

const (
	verdictWrong   verdict = iota // contradicts what is known
	verdictPartial                // is right as far as it goes, and ends before the root
	verdictWhole                  // is right from the leaf to the root
)

// maxRootFrames bounds the C library's frames before the first word of a pattern.
const maxRootFrames = 16

// match compares user frames, leaf first, with the pattern; complete is what is said of
// them: that they reach up to the root.
func (p pattern) match(leafFirst []frame, complete bool, rules *stackRules) verdict {
	frames := make([]frame, len(leafFirst))
	for i, f := range leafFirst {
		frames[len(frames)-1-i] = f
	}
	if complete && len(frames) > 0 && slices.Contains(rules.systemEntries, frames[0].function) &&
		!slices.ContainsFunc(frames, func(f frame) bool { return !rules.foreign(&f) }) {
		return verdictWhole
	}
	if complete {
		if len(frames) == 0 || !rules.entry(&frames[0]) {
			return verdictWrong
		}
		for i := 0; i < len(frames) && i < maxRootFrames+rules.moreRootFrames; i++ {
			if frames[i].function == p[0].function && p.matchFrom(0, frames[i:], rules) {
				return verdictWhole
			}
			if !rules.foreign(&frames[i]) {
				break
			}
		}
		return verdictWrong
	}
	for len(frames) > 0 && rules.foreign(&frames[0]) && frames[0].function != p[0].function && p.rooted(frames, rules) {
		frames = frames[1:]
	}
	for from := range p {
		if p.matchFrom(from, frames, rules) {
			return verdictPartial
		}
	}
	return verdictWrong
}

// rooted tells whether a stack that does not begin with the root has some of the frames
// before the first word of the pattern.
func (p pattern) rooted(frames []frame, rules *stackRules) bool {
	for i := range frames {
		if frames[i].function == p[0].function {
			return true
		}
		if !rules.foreign(&frames[i]) {
			return false
		}
	}
	return false
}

// matchFrom tells whether the frames are what the pattern says from an element on.
func (p pattern) matchFrom(from int, frames []frame, rules *stackRules) bool {
	gone := false // an optional one was missing, so all that follow are
	for _, e := range p[from:] {
		switch {
		case e.max > 0:
			n := 0
			for n < e.max && n < len(frames) && rules.foreign(&frames[n]) {
				n++
			}
			if n < e.min {
				return false
			}
			frames = frames[n:]
		case e.optional && gone:
		case len(frames) > 0 && rules.is(&frames[0], e.function):
			frames, gone = frames[1:], false
		case e.optional:
			gone = true
		default:
			return false
		}
	}
	return len(frames) == 0
}

// stackRules is what holds for all stacks of a program.
type stackRules struct {
	entries        []string    // functions that stacks begin with
	roots          []codeRange // likewise, where they have no names
	libc           string      // a C library's file, some of whose functions have none
	noFile         bool        // foreign functions may be in no file: code made at run time
	moreRootFrames int
	// Functions that a runtime's own stacks begin with, on which it works for the thread.
	systemEntries []string
	// Likewise, where it does that for what is on another stack, to which nothing leads: these are cut.
	cutEntries []string
	// A function, part of which has no name, and the file that it is in.
	nameless, file string
}

func (r *stackRules) is(f *frame, function string) bool {
	return f.function == function || f.function == "" && function == r.nameless && f.mapping == r.file
}

// installing tells whether a stack was seen in the middle of an exception: libgcc goes on
// in the frame that catches it by writing that frame's registers over those that its own
// callers have saved.
func installing(leafFirst []frame) bool {
	for _, f := range leafFirst[:min(2, len(leafFirst))] {
		if !strings.Contains(f.mapping, "/libgcc_s") {
			return false
		}
		if f.function == "_Unwind_Resume" || f.function == "_Unwind_RaiseException" {
			return true
		}
	}
	return false
}

// delivering tells whether the kernel was just setting the registers for a signal's handler: the
// user frames are then by some that were the interrupted function's, and some that are the handler's.
func delivering(leafFirst []frame, kernel string) bool {
	leaf, _, _ := strings.Cut(kernel, " ")
	return len(leafFirst) > 0 && leafFirst[0].function == "w_handler" &&
		slices.Contains([]string{"do_signal", "handle_signal", "setup_return", "arch_do_signal_or_restart", "x64_setup_rt_frame"}, leaf)
}

func (r *stackRules) foreign(f *frame) bool {
	return !f.own() && (r.noFile || f.mapping != "")
}

// entry tells whether a stack may begin with the frame. A C library without .symtab
// has no names for some of its functions.
func (r *stackRules) entry(f *frame) bool {
	for _, name := range r.entries {
		if f.function == name {
			return true
		}
	}
	for i := range r.roots {
		if r.roots[i].holds(f) {
			return true
		}
	}
	return f.function == "" && (f.mapping == r.libc || strings.Contains(f.mapping, "/libc.so") || strings.Contains(f.mapping, "/libc-"))
}

// cut tells whether a stack is a runtime's own that something is missing of.
func (r *stackRules) cut(leafFirst []frame) bool {
	n := len(leafFirst)
	return n > 0 && slices.Contains(r.cutEntries, leafFirst[n-1].function) &&
		!slices.ContainsFunc(leafFirst, func(f frame) bool { return !r.foreign(&f) })
}

// normalize reduces the name of a function to its last component, without
// arguments, what a compiler has appended, or the tier of a JIT compiler.
func normalize(name string) string {
	if js, ok := strings.CutPrefix(name, "JS:"); ok {
		js, _, _ = strings.Cut(strings.TrimLeft(js, "*~^+"), " ")
		return js
	}
	name = withoutTemplateArguments(name)
	for _, suffix := range []string{".cold", ".part.", ".isra.", ".constprop.", ".abi0"} {
		if i := strings.Index(name, suffix); i > 0 {
			name = name[:i]
		}
	}
	if i := strings.LastIndex(name, ")."); i > 0 { // a method of Go
		return name[i+2:]
	}
	if i := strings.IndexByte(name, '('); i > 0 {
		name = name[:i]
	}
	if i := strings.LastIndexAny(name, " :./"); i >= 0 {
		name = name[i+1:]
	}
	return name
}

func withoutTemplateArguments(name string) string {
	var b strings.Builder
	depth := 0
	for _, c := range name {
		switch {
		case c == '<':
			depth++
		case c == '>':
			depth--
		case depth == 0:
			b.WriteRune(c)
		}
	}
	return b.String()
}
