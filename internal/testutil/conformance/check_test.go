package conformance

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

func TestValid(t *testing.T) {
	require.Empty(t, Check(valid()))
}

func TestCheckChangesNothing(t *testing.T) {
	p, want := valid(), valid()
	p.MarkReadOnly()
	Check(p)
	a, err := (&pprofile.JSONMarshaler{}).MarshalProfiles(p)
	require.NoError(t, err)
	b, err := (&pprofile.JSONMarshaler{}).MarshalProfiles(want)
	require.NoError(t, err)
	require.Equal(t, string(b), string(a))
}

// Marshalling moves strings of the resource to the string table.
func TestValidAfterTheWire(t *testing.T) {
	p := valid()
	attrs := p.ResourceProfiles().At(0).Resource().Attributes()
	attrs.PutEmptySlice("list").AppendEmpty().SetStr("in a list")
	attrs.PutEmptyMap("map").PutStr("nested key", "nested value")
	p.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes().PutStr("scope key", "scope value")
	wire, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(p)
	require.NoError(t, err)
	got, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(wire)
	require.NoError(t, err)
	require.Greater(t, got.Dictionary().StringTable().Len(), len(testStrings))
	require.Empty(t, Check(got))
}

// pcommon.Map refuses a second key of the same name, the wire does not.
func TestDuplicateResourceKey(t *testing.T) {
	p := valid()
	p.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.nome", "svc")
	wire, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(p)
	require.NoError(t, err)
	wire = bytes.Replace(wire, []byte("service.nome"), []byte("service.name"), 1)
	p, err = (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(wire)
	require.NoError(t, err)
	var found []string
	for _, err := range Check(p) {
		found = append(found, err.Error())
	}
	require.Contains(t, found, `resource_profiles[0].resource: two attributes have the key "service.name"`)
}

func TestEmpty(t *testing.T) {
	require.Len(t, Check(pprofile.NewProfiles()), int(numTables), "every table needs its entry 0")
}

// Every violation alone gives exactly the one error that names it.
func TestViolations(t *testing.T) {
	for want, violate := range map[string]func(pprofile.Profiles, pprofile.ProfilesDictionary){
		// Dictionary: entry 0.
		"attribute_table[0]: is not the zero value": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.AttributeTable().At(0).Value().SetBool(false)
		},
		"function_table[0]: is not the zero value": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.FunctionTable().At(0).SetStartLine(1)
		},
		"mapping_table[0]: is not the zero value": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.MappingTable().At(0).SetFileOffset(1)
		},
		"location_table[0]: is not the zero value": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.LocationTable().At(0).SetAddress(1)
		},
		"stack_table[0]: is not the zero value": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.StackTable().At(0).LocationIndices().Append(1)
		},
		"link_table[0]: is not the zero value": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.LinkTable().At(0).SetSpanID(pcommon.SpanID{1})
		},
		"string_table[0]: is not the zero value": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.StringTable().SetAt(0, "service.name")
		},
		// Dictionary: duplicates. The copies are used, so that they are no orphans.
		"string_table[13]: equals entry 5": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.StringTable().Append("main")
			d.FunctionTable().At(1).SetSystemNameStrindex(13)
		},
		"attribute_table[6]: equals entry 2": func(p pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.AttributeTable().At(2).CopyTo(d.AttributeTable().AppendEmpty())
			onCPU(p).AttributeIndices().Append(6)
		},
		"function_table[2]: equals entry 1": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.FunctionTable().At(1).CopyTo(d.FunctionTable().AppendEmpty())
			d.LocationTable().At(2).Lines().At(0).SetFunctionIndex(2)
		},
		"mapping_table[2]: equals entry 1": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.MappingTable().At(1).CopyTo(d.MappingTable().AppendEmpty())
			d.LocationTable().At(2).SetMappingIndex(2)
		},
		"location_table[3]: equals entry 1": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.LocationTable().At(1).CopyTo(d.LocationTable().AppendEmpty())
			d.StackTable().At(2).LocationIndices().Append(3)
		},
		"stack_table[3]: equals entry 1": func(p pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.StackTable().At(1).CopyTo(d.StackTable().AppendEmpty())
			onCPU(p).Samples().At(1).SetStackIndex(3)
		},
		"link_table[2]: equals entry 1": func(p pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.LinkTable().At(1).CopyTo(d.LinkTable().AppendEmpty())
			onCPU(p).Samples().At(1).SetLinkIndex(2)
		},
		"stack_table[3]: equals entry 0": func(p pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.StackTable().AppendEmpty()
			onCPU(p).Samples().At(1).SetStackIndex(3)
		},
		"mapping_table[2]: equals entry 1 ": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			// The order of attributes makes no difference.
			d.MappingTable().At(1).AttributeIndices().FromRaw([]int32{5, 1})
			addMapping(d).SetFileOffset(0)
			d.MappingTable().At(2).AttributeIndices().FromRaw([]int32{1, 5})
		},
		// Dictionary: orphans.
		"string_table[13]: nothing refers to it": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.StringTable().Append("orphan")
		},
		"attribute_table[6]: nothing refers to it": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			a := d.AttributeTable().AppendEmpty()
			a.SetKeyStrindex(9)
			a.Value().SetInt(1)
		},
		"function_table[2]: nothing refers to it": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.FunctionTable().AppendEmpty().SetNameStrindex(6)
		},
		"mapping_table[2]: nothing refers to it": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.MappingTable().AppendEmpty().SetFilenameStrindex(6)
		},
		"location_table[3]: nothing refers to it": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			l := d.LocationTable().AppendEmpty()
			l.SetAddress(7)
			l.AttributeIndices().Append(5)
		},
		"stack_table[3]: nothing refers to it": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.StackTable().AppendEmpty().LocationIndices().Append(1)
		},
		"link_table[2]: nothing refers to it": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			l := d.LinkTable().AppendEmpty()
			l.SetTraceID(pcommon.TraceID{7})
			l.SetSpanID(pcommon.SpanID{7})
		},
		// Dictionary: entries.
		`string_table[12]: "b\xff" is not valid UTF-8`: func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.StringTable().SetAt(12, "b\xff")
		},
		`attribute_table[5]: "\xff" is not valid UTF-8`: func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.AttributeTable().At(5).Value().SetStr("\xff")
		},
		`attribute_table[5]: "\xfe" is not valid UTF-8`: func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.AttributeTable().At(5).Value().SetEmptySlice().AppendEmpty().SetEmptyMap().PutInt("\xfe", 1)
		},
		"attribute_table[6]: the key is empty": func(p pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.AttributeTable().AppendEmpty().Value().SetInt(1)
			onCPU(p).AttributeIndices().Append(6)
		},
		"attribute_table[5]: the value is not set": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			pcommon.NewValueEmpty().CopyTo(d.AttributeTable().At(5).Value())
		},
		"attribute_table[6]: key_strindex 13 is outside of string_table with 13 entries": func(p pprofile.Profiles, d pprofile.ProfilesDictionary) {
			a := d.AttributeTable().AppendEmpty()
			a.SetKeyStrindex(13)
			a.Value().SetInt(1)
			onCPU(p).AttributeIndices().Append(6)
		},
		"attribute_table[5]: unit_strindex -1 is outside": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.AttributeTable().At(5).SetUnitStrindex(-1)
		},
		"function_table[2]: name_strindex 99 is outside": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			addFunction(d).SetNameStrindex(99)
		},
		"function_table[2]: system_name_strindex 99 is outside": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			addFunction(d).SetSystemNameStrindex(99)
		},
		"function_table[2]: filename_strindex 99 is outside": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			addFunction(d).SetFilenameStrindex(99)
		},
		"function_table[2]: start_line -1 is negative": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			addFunction(d).SetStartLine(-1)
		},
		"mapping_table[2]: filename_strindex 99 is outside": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			addMapping(d).SetFilenameStrindex(99)
		},
		"mapping_table[2]: memory_limit 0x1fff is not above memory_start 0x1fff": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			m := addMapping(d)
			m.SetMemoryStart(0x1fff)
			m.SetMemoryLimit(0x1fff)
		},
		"mapping_table[1]: attribute_indices[1] 99 is outside": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.MappingTable().At(1).AttributeIndices().Append(99)
		},
		"mapping_table[1]: attribute_indices[1] is not set": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.MappingTable().At(1).AttributeIndices().Append(0)
		},
		`mapping_table[1]: two attributes have the key "profile.frame.type"`: func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.MappingTable().At(1).AttributeIndices().Append(5)
		},
		"location_table[2]: mapping_index 2 is outside of mapping_table with 2 entries": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.LocationTable().At(2).SetMappingIndex(2)
		},
		"location_table[2]: address 0x2000 is outside of its mapping 0x1000-0x2000": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.LocationTable().At(2).SetAddress(0x2000)
		},
		"location_table[2]: address 0xfff is outside": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.LocationTable().At(2).SetAddress(0xfff)
		},
		"location_table[2].lines[1]: function_index is not set": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.LocationTable().At(2).Lines().AppendEmpty()
		},
		"location_table[2].lines[0]: function_index 2 is outside": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.LocationTable().At(2).Lines().At(0).SetFunctionIndex(2)
		},
		"location_table[2].lines[0]: line -1, column 0: negative": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.LocationTable().At(2).Lines().At(0).SetLine(-1)
		},
		"location_table[2].lines[0]: line 0, column -1: negative": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.LocationTable().At(2).Lines().At(0).SetColumn(-1)
		},
		"location_table[2]: has no profile.frame.type": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.LocationTable().At(2).AttributeIndices().FromRaw(nil)
		},
		"location_table[2]: attribute_indices[1] -5 is outside": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.LocationTable().At(2).AttributeIndices().Append(-5)
		},
		"stack_table[2]: location_indices[1] is not set": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.StackTable().At(2).LocationIndices().SetAt(1, 0)
		},
		"stack_table[2]: location_indices[1] 3 is outside of location_table with 3 entries": func(_ pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.StackTable().At(2).LocationIndices().SetAt(1, 3)
		},
		"link_table[1]: trace id or span id is zero": func(p pprofile.Profiles, d pprofile.ProfilesDictionary) {
			d.LinkTable().At(1).SetSpanID(pcommon.SpanID{})
			d.AttributeTable().At(4).Value().SetStr("0000000000000000")
		},
		// Resources and scopes.
		"resource_profiles[1]: has no scope_profiles": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			p.ResourceProfiles().At(1).ScopeProfiles().RemoveIf(func(pprofile.ScopeProfiles) bool { return true })
		},
		"resource_profiles[1].scope_profiles[0]: has no profiles": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			p.ResourceProfiles().At(1).ScopeProfiles().At(0).Profiles().RemoveIf(func(pprofile.Profile) bool { return true })
		},
		`resource_profiles[0].resource: "\xff" is not valid UTF-8`: func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			p.ResourceProfiles().At(0).Resource().Attributes().PutStr("k", "\xff")
		},
		"resource_profiles[0].resource: an attribute key is empty": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			p.ResourceProfiles().At(0).Resource().Attributes().PutStr("", "v")
		},
		`resource_profiles[0].scope_profiles[0].scope: "\xff" is not valid UTF-8`: func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			p.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes().PutStr("\xff", "v")
		},
		`scope_profiles[0].scope.name: "\xff" is not valid UTF-8`: func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			p.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().SetName("\xff")
		},
		`scope_profiles[0].scope.version: "\xff" is not valid UTF-8`: func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			p.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().SetVersion("\xff")
		},
		`scope_profiles[0].schema_url: "\xff" is not valid UTF-8`: func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			p.ResourceProfiles().At(0).ScopeProfiles().At(0).SetSchemaUrl("\xff")
		},
		`resource_profiles[0].schema_url: "\xff" is not valid UTF-8`: func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			p.ResourceProfiles().At(0).SetSchemaUrl("\xff")
		},
		"profiles[2]: another profile of this resource has the type samples/count, too": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			setPeriod(addProfile(p.ResourceProfiles().At(0).ScopeProfiles().At(0), 1, 2), 1, 3, 4)
		},
		// Profiles.
		"another profile has the profile_id 01000000000000000000000000000000, too": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			offCPU(p).SetProfileID(onCPU(p).ProfileID())
		},
		"profiles[0]: time 0 with duration 2000 is no interval": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			onCPU(p).SetTime(0)
			onCPU(p).SetDurationNano(2000)
		},
		"profiles[0]: time 1000 with duration 18446744073709551000 is no interval": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			onCPU(p).SetDurationNano(math.MaxUint64 - 615)
		},
		"profiles[2]: has no samples": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			empty := addProfile(p.ResourceProfiles().At(0).ScopeProfiles().At(0), 7, 2)
			empty.Samples().RemoveIf(func(pprofile.Sample) bool { return true })
		},
		"profiles[2]: sample_type /count is incomplete": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			addProfile(p.ResourceProfiles().At(0).ScopeProfiles().At(0), 0, 2)
		},
		"profiles[2]: sample_type main/ is incomplete": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			addProfile(p.ResourceProfiles().At(0).ScopeProfiles().At(0), 5, 0)
		},
		"profiles[2]: sample_type.unit_strindex 77 is outside": func(p pprofile.Profiles, d pprofile.ProfilesDictionary) {
			other := addProfile(p.ResourceProfiles().At(0).ScopeProfiles().At(0), 5, 2)
			setPeriod(other, 1, 3, 4)
			other.PeriodType().SetUnitStrindex(4)
			other.SampleType().SetUnitStrindex(77)
		},
		"profiles[2]: period_type.type_strindex -1 is outside": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			setPeriod(addProfile(p.ResourceProfiles().At(0).ScopeProfiles().At(0), 5, 2), 1, -1, 4)
		},
		"profiles[0]: attribute_indices[0] 99 is outside": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			onCPU(p).AttributeIndices().Append(99)
		},
		"profiles[0]: period 0 does not go with period_type cpu/nanoseconds": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			onCPU(p).SetPeriod(0)
		},
		"profiles[0]: period -1 does not go with period_type cpu/nanoseconds": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			onCPU(p).SetPeriod(-1)
		},
		"profiles[1]: period 5 does not go with period_type /": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			offCPU(p).SetPeriod(5)
		},
		"profiles[0]: period_type samples/nanoseconds of an on-CPU profile": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			setPeriod(onCPU(p), 1, 1, 4)
		},
		"profiles[1]: period_type cpu/nanoseconds of an off-CPU profile": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			setPeriod(offCPU(p), 1, 3, 4)
		},
		// Samples.
		"profiles[0].samples[2]: stack_index is not set": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			onCPU(p).Samples().At(2).SetStackIndex(0)
		},
		"profiles[0].samples[2]: stack_index 3 is outside of stack_table with 3 entries": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			onCPU(p).Samples().At(2).SetStackIndex(3)
		},
		"profiles[0].samples[2]: link_index -1 is outside": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			onCPU(p).Samples().At(2).SetLinkIndex(-1)
		},
		"profiles[0].samples[2]: attribute_indices[0] 6 is outside of attribute_table with 6 entries": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			onCPU(p).Samples().At(2).AttributeIndices().Append(6)
		},
		`profiles[0].samples[2]: two attributes have the key "tenant"`: func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			onCPU(p).Samples().At(2).AttributeIndices().Append(1, 2)
		},
		"profiles[0].samples[1]: stack, attributes and link equal those of sample 0": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			onCPU(p).Samples().At(1).AttributeIndices().FromRaw([]int32{4, 3, 1})
		},
		"profiles[0].samples[0]: has values and timestamps": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			for _, s := range onCPU(p).Samples().All() {
				s.Values().Append(1, 1)
			}
		},
		"profiles[1].samples[0]: has values only": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			for _, s := range offCPU(p).Samples().All() {
				s.TimestampsUnixNano().FromRaw(nil)
				s.Values().FromRaw([]int64{1})
			}
		},
		"profiles[0].samples[1]: has values only, the first sample timestamps only": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			s := onCPU(p).Samples().At(1)
			s.TimestampsUnixNano().FromRaw(nil)
			s.Values().Append(1)
		},
		"profiles[0].samples[1]: has neither values nor timestamps, the first sample timestamps only": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			onCPU(p).Samples().At(1).TimestampsUnixNano().FromRaw(nil)
		},
		"profiles[2].samples[0]: has neither values nor timestamps": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			other := addProfile(p.ResourceProfiles().At(0).ScopeProfiles().At(0), 5, 2)
			for _, s := range other.Samples().All() {
				s.TimestampsUnixNano().FromRaw(nil)
			}
		},
		"profiles[2].samples[2]: 2 values without timestamps": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			other := addProfile(p.ResourceProfiles().At(0).ScopeProfiles().At(0), 5, 2)
			for _, s := range other.Samples().All() {
				s.TimestampsUnixNano().FromRaw(nil)
				s.Values().Append(1)
			}
			other.Samples().At(2).Values().Append(1)
		},
		"profiles[1].samples[1]: 3 values, but 2 timestamps": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			offCPU(p).Samples().At(1).Values().Append(1)
		},
		"profiles[0].samples[1]: timestamp 1 (1100) is outside of the profile's 1000 for 100 ns": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			onCPU(p).Samples().At(1).TimestampsUnixNano().SetAt(1, 1_100)
		},
		"profiles[0].samples[1]: timestamp 0 (999) is outside": func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			onCPU(p).Samples().At(1).TimestampsUnixNano().SetAt(0, 999)
		},
		`attribute trace_id = "01000000000000000000000000000000", but the link has "03000000000000000000000000000000"`: func(p pprofile.Profiles, d pprofile.ProfilesDictionary) {
			l := d.LinkTable().AppendEmpty()
			l.SetTraceID(pcommon.TraceID{3})
			l.SetSpanID(pcommon.SpanID{2})
			onCPU(p).Samples().At(0).SetLinkIndex(2)
		},
		`attribute span_id = "0200000000000000", but the link has ""`: func(p pprofile.Profiles, _ pprofile.ProfilesDictionary) {
			onCPU(p).Samples().At(2).AttributeIndices().Append(4)
		},
	} {
		t.Run(want, func(t *testing.T) {
			p := valid()
			violate(p, p.Dictionary())
			errs := Check(p)
			var matching []error
			for _, err := range errs {
				if strings.Contains(err.Error(), strings.TrimSpace(want)) {
					matching = append(matching, err)
				}
			}
			require.Len(t, matching, 1, "all: %v", errs)
			require.Len(t, errs, 1)
		})
	}
}
