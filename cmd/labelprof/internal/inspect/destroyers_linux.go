// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect

import (
	"encoding/binary"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	target "github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

const (
	// maxBuildInfoBytes bounds what is read of the list of a Go program's modules.
	maxBuildInfoBytes = 1 << 20
	// The format is in Go's debug/buildinfo: a header, the version of Go and the list of modules,
	// each after its length.
	buildInfoHeaderBytes = 32
	buildInfoMagic       = "\xff Go buildinf:"

	ddTraceModule = "github.com/DataDog/dd-trace-go/v2"
	// ddTraceFixed is the minor version of dd-trace-go v2 whose bridge keeps labels.
	ddTraceFixed = 12

	maxCommandLine = 64 << 10
)

// goDestroyers says what in a Go program takes labels away.
func goDestroyers(e *elffile.File) []string {
	s, ok, err := e.Section(".go.buildinfo")
	if err != nil || !ok {
		return nil
	}
	data := make([]byte, min(s.Size, maxBuildInfoBytes))
	if e.ReadVaddr(data, s.Addr) != nil {
		return nil
	}
	version := moduleVersion(data, ddTraceModule)
	if minor, ok := minorOfV2(version); !ok || minor >= ddTraceFixed {
		return nil
	}
	return []string{fmt.Sprintf("The program has dd-trace-go %s: a span that is started through its OpenTelemetry bridge (ddtrace/opentelemetry) replaces the pprof labels of its goroutine, and they do not come back when it ends. "+
		"Update to v2.%d or newer, or start spans with tracer.StartSpanFromContext.", version, ddTraceFixed)}
}

// moduleVersion returns the version of a module in the build information of a Go program, "" if
// it is not there.
func moduleVersion(data []byte, module string) string {
	if len(data) < buildInfoHeaderBytes || string(data[:len(buildInfoMagic)]) != buildInfoMagic {
		return ""
	}
	_, rest, ok := lengthPrefixed(data[buildInfoHeaderBytes:])
	if !ok {
		return ""
	}
	modules, _, _ := lengthPrefixed(rest)
	for line := range strings.Lines(string(modules)) {
		if fields := strings.Split(strings.TrimSpace(line), "\t"); len(fields) >= 3 && fields[0] == "dep" && fields[1] == module {
			return fields[2]
		}
	}
	return ""
}

// lengthPrefixed cuts off bytes that stand behind their length.
func lengthPrefixed(data []byte) (text, rest []byte, ok bool) {
	n, used := binary.Uvarint(data)
	if used <= 0 || n > uint64(len(data)-used) {
		return nil, nil, false
	}
	return data[used : used+int(n)], data[used+int(n):], true
}

var version2 = regexp.MustCompile(`^v2\.(\d{1,4})\.`)

func minorOfV2(version string) (minor int, ok bool) {
	m := version2.FindStringSubmatch(version)
	if m == nil {
		return 0, false
	}
	minor, err := strconv.Atoi(m[1])
	return minor, err == nil
}

// Mangled names of v8::internal::Version::major_ and minor_, which are ints.
const (
	v8MajorSymbol = "_ZN2v88internal7Version6major_E"
	v8MinorSymbol = "_ZN2v88internal7Version6minor_E"
)

// v8Version is the version of the V8 in a file.
func v8Version(e *elffile.File) (major, minor uint32, ok bool) {
	read := func(symbol string) (uint32, bool) {
		s, ok, err := e.DynamicSymbol(symbol)
		if err != nil || !ok {
			return 0, false
		}
		var b [4]byte
		if e.ReadVaddr(b[:], s.Value) != nil {
			return 0, false
		}
		return binary.LittleEndian.Uint32(b[:]), true
	}
	major, ok = read(v8MajorSymbol)
	if !ok {
		return 0, 0, false
	}
	minor, ok = read(v8MinorSymbol)
	return major, minor, ok
}

// nodeDestroyers says what in a Node.js takes labels away: contexts that do not follow
// asynchronous code. What carries them, async context frames, came with Node.js 22, behind a flag,
// and is on from 24 on.
func nodeDestroyers(fs procfs.FS, info *target.Info, e *elffile.File) []string {
	const (
		on   = "--experimental-async-context-frame"
		off  = "--no-async-context-frame"
		lost = "labels do not go with asynchronous code, libraries publish none, and no reader finds them."
	)
	given, all := nodeOptions(fs, info)
	major, minor, known := v8Version(e)
	switch {
	case given[off] != "":
		return []string{fmt.Sprintf("Node.js runs with %s (in %s): %s Take it away.", off, given[off], lost)}
	case !known, major > 12: // from V8 13.6, of Node.js 24
		return nil
	case major < 12: // to 11.8, of Node.js 21
		return []string{fmt.Sprintf("This Node.js (V8 %d.%d: Node.js 21 or older) has no async context frames: %s Run Node.js 24 or newer, or 22 with %s.", major, minor, lost, on)}
	case given[on] == "" && all:
		return []string{fmt.Sprintf("This Node.js (V8 %d.%d: Node.js 22 or 23) runs without %s: %s Give it that flag, on the command line or in NODE_OPTIONS, or run Node.js 24 or newer.", major, minor, on, lost)}
	}
	return nil
}

// nodeOptions are the flags that a Node.js has been given, and where. all is false where there may be
// others: process.title is written over the command line.
func nodeOptions(fs procfs.FS, info *target.Info) (where map[string]string, all bool) {
	const variable = "NODE_OPTIONS"
	where = map[string]string{}
	add := func(flags []string, from string) {
		for _, flag := range flags {
			where[strings.ReplaceAll(flag, "_", "-")] = from // Node.js takes both
		}
	}
	env, cut, err := fs.Environment(info.PID, maxCommandLine, variable)
	all = err == nil && (!cut || env[variable] != "")
	add(strings.Fields(env[variable]), variable)
	args, _, err := fs.CommandLine(info.PID, maxCommandLine)
	if err != nil || len(args) == 0 || len(args) == 1 && path.Base(args[0]) != path.Base(info.Path) {
		return where, false
	}
	add(flagsOf(args[1:]), "the command line")
	return where, all
}

// flagsOf are the flags among arguments up to the first that is none: the script, whose own arguments follow. One behind
// a flag may be the value of that.
func flagsOf(args []string) (flags []string) {
	value := false
	for _, arg := range args {
		switch flag := strings.HasPrefix(arg, "-"); {
		case arg == "--", !flag && !value:
			return flags
		case flag:
			flags = append(flags, arg)
			value = !strings.Contains(arg, "=")
		default:
			value = false
		}
	}
	return flags
}
