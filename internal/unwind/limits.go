package unwind

import "github.com/customlabels/otelcol-customlabels/internal/record"

// Defaults of Limits: several times what the largest browsers and compilers
// have.
const (
	DefaultSectionBytes = 256 << 20
	DefaultTextBytes    = 1 << 30
	DefaultFunctions    = 2 << 20
	DefaultRows         = 8 << 20
	DefaultRules        = 1<<16 - 1
	DefaultSearchBytes  = 16 << 20
	DefaultCodeBytes    = 3 << 19
)

const (
	// maxEntryBytes bounds one CIE or FDE; those of the largest functions have
	// some tens of KiB.
	maxEntryBytes = 1 << 20

	// maxCIEs bounds what is kept of them. Linkers merge those of .eh_frame;
	// .debug_frame has one for each source file.
	maxCIEs = 64 << 10

	// maxTerminators bounds the terminators in a section; a file has one, or one
	// for each of some parts.
	maxTerminators = 4096

	// maxRemembered bounds the states that DW_CFA_remember_state puts aside in
	// one FDE; compilers write one.
	maxRemembered = 16

	// maxSignalFDEs bounds the FDEs of signal frames whose code is looked at.
	maxSignalFDEs = 64

	// maxSegments bounds the executable segments; files have one or two.
	maxSegments = 16
)

// Limits bounds what New reads and keeps. A zero value stands for the default
// of that name.
type Limits struct {
	SectionBytes int64  // of call frame information, decompressed
	TextBytes    uint64 // from the first to the last executable address
	Functions    int    // with descriptions
	Rows         int    // also those that are merged later
	Rules        int    // at most DefaultRules; functions that need more get Rule 0
	SearchBytes  uint64 // of text without call frame information, for signal trampolines
	CodeBytes    int    // of such text; where there is more, none is followed

	// Hold, if there is one, is told what New holds, again and again, before that becomes more. New
	// returns its error.
	Hold func(Held) error
}

func (l Limits) withDefaults() Limits {
	if l.SectionBytes <= 0 {
		l.SectionBytes = DefaultSectionBytes
	}
	if l.TextBytes == 0 {
		l.TextBytes = DefaultTextBytes
	}
	l.TextBytes = min(l.TextBytes, 1<<32-2*record.UnwindBlockBytes)
	if l.Functions <= 0 {
		l.Functions = DefaultFunctions
	}
	if l.Rows <= 0 {
		l.Rows = DefaultRows
	}
	if l.Rules <= 0 || l.Rules > DefaultRules {
		l.Rules = DefaultRules
	}
	if l.SearchBytes == 0 {
		l.SearchBytes = DefaultSearchBytes
	}
	if l.CodeBytes <= 0 {
		l.CodeBytes = DefaultCodeBytes
	}
	return l
}
