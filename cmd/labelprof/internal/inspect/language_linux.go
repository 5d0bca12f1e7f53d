// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect

import (
	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/executable"
	target "github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// language is what a program is written in, as far as it matters for publishing.
type language string

const (
	anyLanguage    language = ""
	languageGo     language = "go"
	languageNode   language = "nodejs"
	languagePython language = "python"
	languageJava   language = "java"
)

// runtimes are dynamic symbols that a language's runtime exports: V8's host of Node.js, the state
// of CPython, the table of HotSpot's structures.
func runtimes() map[string]language {
	return map[string]language{
		"_ZN4node5StartEiPPc": languageNode, "_PyRuntime": languagePython, "gHotSpotVMStructs": languageJava,
	}
}

// describeLanguage finds out what a program is written in, and what in it destroys labels.
func (r *processReport) describeLanguage(fs procfs.FS, info *target.Info) {
	visitFiles(info, func(m *executable.Mapping, e *elffile.File, _ *executable.Contents) {
		if r.language != anyLanguage {
			return
		}
		if m.Path == info.Path {
			if id, err := e.GoBuildID(); err == nil && id != "" {
				r.language = languageGo
				r.destroyers = goDestroyers(e)
				return
			}
		}
		for symbol, l := range runtimes() {
			if _, ok, err := e.DynamicSymbol(symbol); err == nil && ok {
				r.language = l
			}
		}
		if r.language == languageNode {
			r.destroyers = nodeDestroyers(fs, info, e)
		}
	})
	r.Language = string(r.language)
}
