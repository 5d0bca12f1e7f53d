package samplestore

// Kind is what the time of a sample was spent on.
type Kind uint8

const (
	// OnCPU is time in which a thread ran.
	OnCPU Kind = iota
	// OffCPU is time in which it did not.
	OffCPU
	// Kinds is their number.
	Kinds
)

// Sample is one entry of a profile. The store keeps nothing of it but its strings.
type Sample struct {
	Kind   Kind
	Labels []Label     // keys unique, of any origin: labels, process, thread, trace
	Stack  []*Location // leaf first; equal pointers within a batch are looked up once
	Points []Point
}

// Point is when a sample was taken and what it counts.
type Point struct {
	TimeNs int64 // since 1970
	Hits   int64 // not negative
	Ns     int64 // time that the hits stand for, not negative
}

// Label is a key with a value.
type Label struct {
	Key, Value string
	Number     bool // the value is a decimal number
}

// Location is an address with its functions, innermost first.
type Location struct {
	Address uint64
	Mapping Mapping
	Type    string // of the frame: kernel, native, go and so on; "" if it is not known
	Lines   []Line
}

// Mapping is a file, or what stands for one, in the memory of a process.
type Mapping struct {
	Start, Limit, Offset uint64
	File, BuildID        string
}

// Line is a place in a function.
type Line struct {
	Function Function
	Line     int64
}

// Function is a function of some source file.
type Function struct {
	Name, File string
	StartLine  int64
}

// Frame is what a flame graph tells apart: a function in a module. Name is "" for code
// of a module whose functions are not known.
type Frame struct {
	Name, Module, Type string
	// Group makes it no function but the first level of a grouped tree: Name is the value.
	Group Group
}

// Group says what of a label a frame stands for.
type Group uint8

const (
	// NoGroup is a frame of code.
	NoGroup Group = iota
	// GroupValue is a value of the label.
	GroupValue
	// GroupNone is that the label is absent.
	GroupNone
	// GroupOthers are all values that are not told apart.
	GroupOthers
)

// frames returns the frames of a location, outermost first.
func (l *Location) frames() []Frame {
	if len(l.Lines) == 0 {
		return []Frame{{Module: l.Mapping.File, Type: l.Type}}
	}
	frames := make([]Frame, 0, len(l.Lines))
	for i := len(l.Lines) - 1; i >= 0; i-- {
		frames = append(frames, Frame{Name: l.Lines[i].Function.Name, Module: l.Mapping.File, Type: l.Type})
	}
	return frames
}
