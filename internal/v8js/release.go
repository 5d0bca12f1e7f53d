package v8js

import (
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

type version struct{ major, minor int32 }

func (v version) String() string { return fmt.Sprintf("%d.%d", v.major, v.minor) }

// A release is what the metadata of a version lacks, or has to agree with.
type release struct {
	functionShared                     uint8 // JSFunction
	data, builtin, name, script, id    uint8 // SharedFunctionInfo
	deopt, positions, start            uint8 // Code
	flags, size                        uint8
	bytecodePositions, bytecodeData    uint8 // BytecodeArray
	streamHeader                       uint8 // bytes before the instructions
	deoptLiterals, deoptShared, inline uint8 // indices in the deoptimization data
	baseline, builtins                 uint8 // kinds of code
	functions                          uint16
	early                              bool // a ScopeInfo has its positions before names
	trusted                            bool // code and what belongs to it have types of their own
	wrapped                            bool // the deoptimization data leads to the function by a wrapper
	flagged                            bool // bit 0 of offsets in a source position table is a flag
	bytecodes                          string
	slotsFirst                         bool   // a safepoint table begins with the number of slots
	translations                       string // "": the source position table has all calls
	aarch64                            bool   // stacks there were compared with what programs know of theirs
}

// older are the offsets in a SharedFunctionInfo up to 12.4, newer those from 12.9 on.
func (r release) older() release {
	r.data, r.builtin, r.name, r.script, r.id = 8, 8, 16, 32, 52
	r.deoptLiterals, r.deoptShared, r.inline = 2, 6, 7
	return r
}

func (r release) newer() release {
	r.data, r.builtin, r.name, r.script, r.id = 8, 16, 24, 40, 60
	r.functionShared = 32
	r.deopt, r.positions, r.start = 8, 16, 40
	r.bytecodePositions, r.bytecodeData, r.streamHeader = 24, 64, 32
	r.early, r.trusted, r.wrapped = true, true, true
	return r
}

// releaseOf returns what is known of a version: those of Node.js 20 to 26.
func releaseOf(v version) (r release, ok bool) {
	switch v {
	case version{11, 3}: // 20
		return release{
			functionShared: 24, deopt: 16, positions: 24, start: 40, flags: 48, size: 56,
			bytecodePositions: 32, bytecodeData: 54, streamHeader: 16, baseline: 11, builtins: 2, functions: 16, bytecodes: bytecodes113,
			aarch64: true,
		}.older(), true
	case version{11, 8}: // 21
		return release{
			functionShared: 32, deopt: 8, positions: 16, start: 32, flags: 40, size: 44,
			bytecodePositions: 32, bytecodeData: 52, streamHeader: 32, baseline: 11, builtins: 2, functions: 16, bytecodes: bytecodes118, translations: translations118,
		}.older(), true
	case version{12, 4}: // 22
		return release{
			functionShared: 32, deopt: 8, positions: 16, start: 40, flags: 48, size: 52,
			bytecodePositions: 24, bytecodeData: 64, streamHeader: 32, baseline: 10, builtins: 2, functions: 17, trusted: true, bytecodes: bytecodes124, translations: translations118,
			aarch64: true,
		}.older(), true
	case version{12, 9}: // 23
		return release{
			flags: 48, size: 52, deoptLiterals: 2, deoptShared: 6, inline: 7, baseline: 10, builtins: 2, functions: 17, bytecodes: bytecodes129, translations: translations129,
			aarch64: true,
		}.newer(), true
	case version{13, 6}: // 24
		return release{
			flags: 52, size: 56, deoptLiterals: 3, deoptShared: 7, inline: 8, baseline: 10, builtins: 2, functions: 17, slotsFirst: true, bytecodes: bytecodes136, translations: translations136,
			aarch64: true,
		}.newer(), true
	case version{14, 1}: // 25
		return release{
			flags: 52, size: 56, deoptLiterals: 3, deoptShared: 7, inline: 8, baseline: 10, builtins: 2, functions: 17, flagged: true, slotsFirst: true, bytecodes: bytecodes141, translations: translations136,
		}.newer(), true
	case version{14, 6}: // 26
		return release{
			flags: 52, size: 56, deoptLiterals: 3, deoptShared: 7, inline: 8, baseline: 11, builtins: 3, functions: 17, flagged: true, slotsFirst: true, bytecodes: bytecodes146, translations: translations136,
			aarch64: true,
		}.newer(), true
	}
	return release{}, false
}

// expected is what a build has to say of what is taken for granted, here and in v8read.bpf.h.
func (r *release) expected() map[string]int32 {
	return map[string]int32{
		"TaggedSize":                                            8, // no pointer compression
		"HeapObjectTag":                                         1,
		"SmiShiftSize":                                          31,
		"off_fp_context":                                        -8,
		"off_fp_function":                                       -16,
		"off_fp_bytecode_array":                                 -32,
		"off_fp_bytecode_offset":                                -40,
		"class_Map__instance_type__uint16_t":                    mapType,
		"class_FixedArrayBase__length__SMI":                     arrayLength,
		"class_FixedArray__data__uintptr_t":                     arrayData,
		"class_String__length__int32_t":                         stringLength,
		"class_SeqOneByteString__chars__char":                   stringData,
		"class_SeqTwoByteString__chars__char":                   stringData,
		"class_ConsString__first__String":                       stringData,
		"class_ConsString__second__String":                      consSecond,
		"class_ThinString__actual__String":                      stringData,
		"class_SlicedString__parent__String":                    stringData,
		"class_SlicedString__offset__SMI":                       slicedOffset,
		"class_ExternalString__resource__Object":                stringData,
		"StringRepresentationMask":                              stringRepresentation,
		"ConsStringTag":                                         stringCons,
		"ExternalStringTag":                                     stringExternal,
		"SlicedStringTag":                                       stringSliced,
		"ThinStringTag":                                         stringThin,
		"StringEncodingMask":                                    stringOneByte,
		"OneByteStringTag":                                      stringOneByte,
		"FirstNonstringType":                                    firstNonstring,
		"CodeKindFieldMask":                                     codeKindMask,
		"CodeKindBaseline":                                      int32(r.baseline),
		"class_JSFunction__shared__SharedFunctionInfo":          int32(r.functionShared),
		"class_Script__source__Object":                          scriptSource,
		"class_Script__name__Object":                            scriptName,
		"class_Script__line_ends__Object":                       scriptLineEnds,
		"class_BytecodeArray__data__uintptr_t":                  int32(r.bytecodeData),
		"class_InstructionStream__instruction_start__uintptr_t": int32(r.streamHeader),
		"DeoptimizationDataInliningPositionsIndex":              int32(r.inline),
		"DeoptimizationDataLiteralArrayIndex":                   int32(r.deoptLiterals),
		"DeoptimizationDataInlinedFunctionCountIndex":           deoptInlined,
	}
}

// process returns what the sampling programs have to know.
func (r *release) process(m *metadata, t *types) record.V8Process {
	list := t.fixedArray
	switch {
	case r.wrapped:
		list = m.instanceType("ProtectedFixedArray__PROTECTED_FIXED_ARRAY")
	case r.trusted:
		list = m.instanceType("TrustedFixedArray__TRUSTED_FIXED_ARRAY")
	}
	first := m.instanceType("JSFunction__JS_FUNCTION")
	p := record.V8Process{
		FunctionFirst:  first,
		FunctionLast:   first + r.functions - 1,
		SharedType:     t.shared,
		ScriptType:     t.script,
		BytecodeType:   t.bytecode,
		CodeType:       t.code,
		StreamType:     m.instanceType("InstructionStream__INSTRUCTION_STREAM"),
		ListType:       list,
		FunctionShared: r.functionShared,
		SharedData:     r.data,
		SharedBuiltin:  r.builtin,
		SharedName:     r.name,
		SharedScript:   r.script,
		SharedLiteral:  r.id,
		CodeDeopt:      r.deopt,
		CodeStart:      r.start,
		CodeFlags:      r.flags,
		CodeSize:       r.size,
		StreamHeader:   r.streamHeader,
		DeoptShared:    arrayData + 8*r.deoptShared,
		Baseline:       r.baseline,
		BytecodeHeader: r.bytecodeData,
		Builtin:        r.builtins,
	}
	if r.wrapped {
		p.SharedWrapped = 1
	}
	return p
}

// moduleScope is the type of a module's scope in the flags of a ScopeInfo.
func (r *release) moduleScope() uint64 {
	if r.early {
		return 5
	}
	return 3
}
