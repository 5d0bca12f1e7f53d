package symbol

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

const (
	// maxMapLine bounds a line of a perf map; what is longer is skipped.
	maxMapLine = 8 << 10
	// maxMapName bounds the name of a function in it.
	maxMapName = 1 << 10
)

// parseMapLine parses a line of a perf map, with or without 0x before the numbers:
//
//	start size name
//
// start and size are hexadecimal (perf's jit-interface.txt). ok is false for a line
// that is none, or whose function has no extent.
func parseMapLine(line []byte) (start uint64, size uint32, name []byte, ok bool) {
	first, rest, ok1 := bytes.Cut(line, []byte(" "))
	second, name, ok2 := bytes.Cut(rest, []byte(" "))
	start, err1 := hexNumber(first)
	length, err2 := hexNumber(second)
	name, _, _ = bytes.Cut(bytes.TrimSpace(name), []byte{0})
	if !ok1 || !ok2 || err1 != nil || err2 != nil || length == 0 || length > math.MaxUint32 || start+length < start || len(name) == 0 {
		return 0, 0, nil, false
	}
	return start, uint32(length), name[:min(len(name), maxMapName)], true
}

func hexNumber(b []byte) (uint64, error) {
	b = bytes.TrimPrefix(b, []byte("0x"))
	return strconv.ParseUint(string(b), 16, 64)
}

// mapFrame tells what a name of a perf map stands for. otherwise is the language of
// names that do not tell.
//
// Two forms tell. Python's (Python/perf_trampoline.c, since 3.12):
//
//	py::NAME:FILE
//
// V8's (src/logging/log.cc) of functions, of which the position is where they begin:
//
//	KIND:[~^+*]NAME FILE:LINE:COLUMN
//
// with how the code was made before the name. It is left out, as it is the same
// function.
func mapFrame(name string, otherwise Language) (Frame, Language) {
	if rest, ok := strings.CutPrefix(name, "py::"); ok {
		if function, file, ok := strings.Cut(rest, ":"); ok && function != "" {
			return Frame{Name: function, File: file}, CPython
		}
	}
	kind, rest, ok := strings.Cut(name, ":")
	if !ok {
		return Frame{Name: name}, otherwise
	}
	switch kind {
	case "JS", "LazyCompile", "Function", "Script", "Eval":
		if rest == "" || !strings.Contains("~^+*", rest[:1]) {
			break
		}
		return scriptFrame(rest[1:]), V8JS
	case "Builtin", "BytecodeHandler":
		// Of V8 itself. Other runtimes have builtins, too, but none writes them so.
		return Frame{Name: name}, V8JS
	}
	return Frame{Name: name}, otherwise
}

// scriptFrame takes "NAME FILE:LINE:COLUMN" apart. NAME may be empty, and both may have
// spaces ("get size").
func scriptFrame(text string) Frame {
	name, place, _ := strings.Cut(text, " ")
	for _, begin := range []string{" /", " file://", " node:"} {
		if before, after, ok := strings.Cut(text, begin); ok {
			name, place = before, begin[1:]+after
			break
		}
	}
	f := Frame{Name: name}
	if name == "" {
		f.Name = "(anonymous)"
	}
	rest, _, ok := cutLast(place)
	if !ok {
		f.File = place
		return f
	}
	file, line, ok := cutLast(rest)
	if !ok {
		f.File = place
		return f
	}
	f.File, f.StartLine = file, line
	return f
}

// cutLast cuts a number and the colon before it off.
func cutLast(s string) (before string, number int, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, 0, false
	}
	n, err := strconv.ParseUint(s[i+1:], 10, 31)
	return s[:i], int(n), err == nil
}
