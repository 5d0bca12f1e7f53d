package record

import "slices"

// TLSKind is the way in which a thread-local address is computed: enum tls_kind.
type TLSKind uint8

// The kinds of places.
const (
	TLSStatic   TLSKind = iota // thread pointer + offset
	TLSDTVGlibc                // dtv[module] + offset, 16-byte entries
	TLSDTVMusl                 // dtv[module] + offset, 8-byte entries
	TLSRegister                // no variable: the register that Go keeps its goroutine in (aarch64)
)

// String returns the kind in words.
func (k TLSKind) String() string {
	switch k {
	case TLSStatic:
		return "static"
	case TLSDTVGlibc:
		return "glibc DTV"
	case TLSDTVMusl:
		return "musl DTV"
	case TLSRegister:
		return "register"
	}
	return "unknown"
}

// GoLayout has offsets in Go's runtime.g and runtime.m, which differ by release: struct go_layout.
type GoLayout struct {
	GM, GLabels    uint16 // g.m, g.labels
	MProcID, MCurG uint16 // m.procid, m.curg
}

// LabelSource is where the threads of a process publish labels: struct label_source. Equal
// ones are the same place.
type LabelSource struct {
	Offset int64  // from the thread pointer (static), or in the module's TLS block (DTV)
	Module uint64 // DTV kinds: the module's id, from 1
	// Generation, when not 0, is the one that a thread's DTV must have reached for its entry
	// to be this module's (TLSDTVGlibc).
	Generation uint64
	ABI        ABI
	Kind       TLSKind
	// V8Field and V8MapType are those of the V8 that runs; ABIThreadContextNodeJS only.
	V8Field uint8
	// GoMap tells that labels are a pointer to a map, as before Go 1.24; ABIGo only.
	GoMap     bool
	Pad       [2]uint8 // 0
	V8MapType uint16
	Go        GoLayout // ABIGo only
}

// LookWhenSampled reports whether it is early enough to look at a process of a program when it is
// sampled: it begins with all label sources that it has, and what they hold needs no more. Go's need no
// more, of others' the process context may have the names. Without any, there is nothing to lack. offCPU:
// there are samples of threads that leave the CPU, too, of which none tells that it is the first.
func LookWhenSampled(sources []LabelSource, presumed, offCPU bool) bool {
	if len(sources) > 0 && offCPU {
		return false
	}
	return !presumed && !slices.ContainsFunc(sources, func(s LabelSource) bool { return s.ABI != ABIGo })
}

// ProcessEntry is what the BPF programs know of a process: struct process_entry. A forked child
// begins with what its parent has.
type ProcessEntry struct {
	Labelled  bool   // it has LabelSources
	Filtered  bool   // no sample of it is wanted
	BySample  bool   // user space has not looked at it yet, and is told of its first sample (EventSampled)
	Runtime   uint8  // RuntimeKind: it has a RuntimeProcess
	Mappings  uint32 // with rows, in chunks in address order
	List      uint64 // whose they are: a forked child shares its parent's; 0: they are not known
	ExecPages uint64 // mapped executable when the list was made; it holds as long as there are as many
	Seal      uint64 // package bpf fills it in
}

// LabelSources are those of a process, or those that a program's processes begin with: struct
// label_sources.
type LabelSources struct {
	Count    uint8
	Presumed bool     // they are those that others had of the same program, and not confirmed
	BySample bool     // of a program: it is early enough to look at its processes when they are sampled
	Pad      [5]uint8 // 0
	Seal     uint64   // package bpf fills it in
	Source   [MaxLabelSources]LabelSource
}
