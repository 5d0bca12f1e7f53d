// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
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

// nodeDestroyers says what in a Node.js takes labels away: contexts that do not follow
// asynchronous code.
func nodeDestroyers(fs procfs.FS, pid int) []string {
	const off = "--no-async-context-frame"
	where := ""
	if args, _, err := fs.CommandLine(pid, maxCommandLine); err == nil && slices.Contains(args, off) {
		where = "the command line"
	}
	const options = "NODE_OPTIONS"
	if env, err := fs.Environment(pid, maxCommandLine, options); err == nil && slices.Contains(strings.Fields(env[options]), off) {
		where = options
	}
	if where == "" {
		return nil
	}
	return []string{fmt.Sprintf("Node.js runs with %s (in %s): labels do not go with asynchronous code, and no reader finds them. Take it away.", off, where)}
}
