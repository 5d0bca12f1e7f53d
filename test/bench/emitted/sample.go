package emitted

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// A Sample is one hit of a thread. One entry of a profile can be several.
type Sample struct {
	PID          int64 // 0: the receiver tells none
	TimeUnixNano uint64
	Stack        Stack
	Attributes   map[string]string
}

// A Stack has its leaf first. Samples share stacks.
type Stack []Frame

// A Frame is a place in a file.
type Frame struct {
	Kernel bool
	// File is the name of what is mapped, a path or its last part; empty if nothing is known.
	File string
	// Address is that of the running process, or that which the file's program headers
	// give the place, where a receiver tells the start of mappings as such.
	Address uint64
	// Start and Offset are those of the mapping, in the same space as Address and in the
	// file: the place lies at Address - Start + Offset of the file.
	Start, Offset uint64
	Function      string // empty: not looked up
	// Inlined are the functions that the compiler has put into it there, innermost first.
	Inlined []string
}

// FileOffset is where the place lies in the file.
func (f Frame) FileOffset() uint64 { return f.Address - f.Start + f.Offset }

// User returns the frames that are not the kernel's.
func (s Stack) User() Stack {
	for i, f := range s {
		if !f.Kernel {
			return s[i:]
		}
	}
	return nil
}

func appendSamples(samples []Sample, p pprofile.Profiles) []Sample {
	dict := p.Dictionary()
	stacks := map[int32]Stack{}
	for _, rp := range p.ResourceProfiles().All() {
		pid := int64(0)
		if value, ok := rp.Resource().Attributes().Get("process.pid"); ok {
			pid = value.Int()
		}
		for _, sp := range rp.ScopeProfiles().All() {
			for _, profile := range sp.Profiles().All() {
				for _, entry := range profile.Samples().All() {
					index := entry.StackIndex()
					if _, ok := stacks[index]; !ok {
						stacks[index] = stackAt(dict, index)
					}
					s := Sample{PID: pid, Stack: stacks[index], Attributes: attributes(dict, entry.AttributeIndices())}
					for _, s.TimeUnixNano = range entry.TimestampsUnixNano().All() {
						samples = append(samples, s)
					}
				}
			}
		}
	}
	return samples
}

func stackAt(dict pprofile.ProfilesDictionary, index int32) (stack Stack) {
	for _, i := range dict.StackTable().At(int(index)).LocationIndices().All() {
		location := dict.LocationTable().At(int(i))
		mapping := dict.MappingTable().At(int(location.MappingIndex()))
		f := Frame{
			Kernel:  attributes(dict, location.AttributeIndices())["profile.frame.type"] == "kernel",
			File:    text(dict, mapping.FilenameStrindex()),
			Address: location.Address(), Start: mapping.MemoryStart(), Offset: mapping.FileOffset(),
		}
		for i, line := range location.Lines().All() { // the last one is the outermost function
			if i > 0 {
				f.Inlined = append(f.Inlined, f.Function)
			}
			f.Function = text(dict, dict.FunctionTable().At(int(line.FunctionIndex())).NameStrindex())
		}
		stack = append(stack, f)
	}
	return stack
}

func attributes(dict pprofile.ProfilesDictionary, indices pcommon.Int32Slice) map[string]string {
	m := map[string]string{}
	for _, i := range indices.All() {
		attribute := dict.AttributeTable().At(int(i))
		m[text(dict, attribute.KeyStrindex())] = attribute.Value().AsString()
	}
	return m
}

func text(dict pprofile.ProfilesDictionary, index int32) string {
	return dict.StringTable().At(int(index))
}
