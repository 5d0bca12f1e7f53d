// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect

import (
	"bytes"
	"io"
	"path"
	"regexp"
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/executable"
	target "github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// maxLibraryBytes bounds what is read of a C library to find its version.
const maxLibraryBytes = 4 << 20

// describeLibrary finds out which C library a process uses.
func (r *processReport) describeLibrary(info *target.Info) {
	r.CLibrary = "unknown"
	visitFiles(info, func(m *executable.Mapping, e *elffile.File, file *executable.Contents) {
		switch {
		case m.Path == info.Path:
			if interp := e.Interp(); interp != "" {
				r.CLibrary = tlsresolve.LibcBehind(interp, executable.Paths(info.Mappings)).String()
			} else if e.IsExecutable() {
				r.CLibrary = "static"
			} else {
				r.CLibrary = tlsresolve.LibcOf(info.Path).String() // a loader, run as a program
			}
		case r.LibraryVersion == "" && strings.HasPrefix(path.Base(m.Path), "libc.so.6"):
			r.LibraryVersion = glibcVersion(file)
		}
	})
	if r.CLibrary != tlsresolve.Glibc.String() {
		r.LibraryVersion = ""
	}
}

// glibcVersion finds the version in the banner of a glibc, such as
// "GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.".
func glibcVersion(file io.ReaderAt) string {
	data, err := io.ReadAll(io.NewSectionReader(file, 0, maxLibraryBytes))
	if err != nil {
		return ""
	}
	_, banner, ok := bytes.Cut(data, []byte("GNU C Library ("))
	if !ok {
		return ""
	}
	banner = banner[:min(len(banner), 200)]
	m := regexp.MustCompile(`release version (\d+(\.\d+){1,2})`).FindSubmatch(banner)
	if m == nil {
		return ""
	}
	return string(m[1])
}

func isCLibrary(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, "libc.so") || strings.HasPrefix(base, "libc-2.") || strings.HasPrefix(base, "ld-")
}
