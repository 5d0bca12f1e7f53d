package inlinestringsextension

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// testProfiles have strings wherever attributes of resources and scopes can have them.
func testProfiles() pprofile.Profiles {
	p := pprofile.NewProfiles()
	d := p.Dictionary()
	d.StringTable().Append("", "cpu", "tenant")
	d.MappingTable().AppendEmpty()
	d.LocationTable().AppendEmpty()
	d.FunctionTable().AppendEmpty()
	d.LinkTable().AppendEmpty()
	d.AttributeTable().AppendEmpty()
	d.AttributeTable().AppendEmpty().SetKeyStrindex(2)
	d.AttributeTable().At(1).Value().SetStr("acme")
	d.StackTable().AppendEmpty()
	for _, service := range []string{"shop", "cart"} {
		r := p.ResourceProfiles().AppendEmpty()
		r.SetSchemaUrl("https://example.com/" + service)
		r.Resource().SetDroppedAttributesCount(3)
		fill(r.Resource().Attributes(), service)
		for _, name := range []string{"a", "b"} {
			s := r.ScopeProfiles().AppendEmpty()
			s.Scope().SetName(name)
			s.Scope().SetVersion("1")
			fill(s.Scope().Attributes(), name)
			profile := s.Profiles().AppendEmpty()
			profile.SampleType().SetTypeStrindex(1)
			sample := profile.Samples().AppendEmpty()
			sample.AttributeIndices().Append(1)
			sample.TimestampsUnixNano().Append(1 << 60)
		}
	}
	return p
}

func fill(m pcommon.Map, name string) {
	m.PutStr("service.name", name)
	m.PutStr("empty", "")
	m.PutStr("cpu", "tenant") // the table has both already
	m.PutInt("process.pid", 1)
	m.PutBool("yes", true)
	m.PutDouble("half", 0.5)
	m.PutEmpty("nothing")
	m.PutEmptyBytes("bytes").Append(1, 2)
	list := m.PutEmptySlice("process.command_args")
	list.AppendEmpty().SetStr("run")
	list.AppendEmpty().SetInt(2)
	inner := list.AppendEmpty().SetEmptyMap()
	inner.PutStr("deep", name)
	inner.PutEmptySlice("deeper").AppendEmpty().SetStr("deepest")
}

// encodedProfiles are the bytes that an exporter sends over HTTP.
func encodedProfiles(t testing.TB, p pprofile.Profiles) []byte {
	data, err := pprofileotlp.NewExportRequestFromProfiles(p).MarshalProto()
	require.NoError(t, err)
	return data
}

// references counts those of keys and strings in attributes of resources and scopes.
func references(t testing.TB, request []byte) (n int) {
	count := func(message []byte) ([]byte, error) {
		var attribute commonpb.KeyValue
		require.NoError(t, proto.Unmarshal(message, &attribute))
		n += keyValueReferences(&attribute)
		return message, nil
	}
	attributes := func(field protowire.Number) edit { return within(edits{field: count}) }
	_, err := within(edits{1: within(edits{1: attributes(1), 2: within(edits{1: attributes(3)})})})(request)
	require.NoError(t, err)
	return n
}

func keyValueReferences(attribute *commonpb.KeyValue) (n int) {
	if attribute.KeyStrindex != 0 {
		n++
	}
	return n + valueReferences(attribute.Value)
}

func valueReferences(value *commonpb.AnyValue) (n int) {
	if _, ok := value.GetValue().(*commonpb.AnyValue_StringValueStrindex); ok {
		n++
	}
	for _, element := range value.GetArrayValue().GetValues() {
		n += valueReferences(element)
	}
	for _, entry := range value.GetKvlistValue().GetValues() {
		n += keyValueReferences(entry)
	}
	return n
}

// requireInline fails unless a request has no references and says what testProfiles say.
func requireInline(t testing.TB, request []byte) {
	require.Zero(t, references(t, request))
	got := pprofileotlp.NewExportRequest()
	require.NoError(t, got.UnmarshalProto(request))
	requireSame(t, testProfiles(), got.Profiles())
}

// requireSame compares all but the table of strings, which exporters add strings of attributes
// to: nothing but attributes refers to those.
func requireSame(t testing.TB, want, got pprofile.Profiles) {
	require.GreaterOrEqual(t, got.Dictionary().StringTable().Len(), want.Dictionary().StringTable().Len())
	for i, text := range want.Dictionary().StringTable().All() {
		require.Equal(t, text, got.Dictionary().StringTable().At(i))
	}
	want.Dictionary().StringTable().CopyTo(got.Dictionary().StringTable())
	require.Equal(t, want, got)
}

func TestInlineStrings(t *testing.T) {
	request := encodedProfiles(t, testProfiles())
	require.NotZero(t, references(t, request))
	inline, err := inlineStrings(request)
	require.NoError(t, err)
	requireInline(t, inline)

	again, err := inlineStrings(inline)
	require.NoError(t, err)
	require.Equal(t, inline, again, "what is in place stays")
}

// TestUnknownFields: what a later protocol may add passes, and a field of another type than this
// protocol has is another field.
func TestUnknownFields(t *testing.T) {
	added := protowire.AppendTag(nil, 1000, protowire.Fixed32Type)
	added = protowire.AppendFixed32(added, 7)
	added = protowire.AppendTag(added, requestResourceProfiles, protowire.VarintType)
	added = protowire.AppendVarint(added, 7)
	added = append(added, message(requestResourceProfiles, message(dictionaryStringTable, []byte("no string of the table")))...)
	inline, err := inlineStrings(append(added, encodedProfiles(t, testProfiles())...))
	require.NoError(t, err)
	require.Equal(t, added, inline[:len(added)])
	requireInline(t, inline[len(added):])
}

func message(field protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), content)
}

func TestInlineRefuses(t *testing.T) {
	attribute := func(a *commonpb.KeyValue) []byte {
		data, err := proto.Marshal(a)
		require.NoError(t, err)
		table := message(requestDictionary, message(dictionaryStringTable, nil))
		return append(table, message(requestResourceProfiles, message(resourceProfilesResource, message(resourceAttributes, data)))...)
	}
	text := func(index int32) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValueStrindex{StringValueStrindex: index}}
	}
	_, err := inlineStrings(attribute(&commonpb.KeyValue{Value: text(0)}))
	require.NoError(t, err)
	for name, request := range map[string][]byte{
		"no message":          {0xff},
		"a cut dictionary":    message(requestDictionary, []byte{0xff}),
		"a cut resource":      message(requestResourceProfiles, []byte{0xff}),
		"a cut attribute":     message(requestResourceProfiles, message(resourceProfilesResource, message(resourceAttributes, []byte{0xff}))),
		"a key beyond":        attribute(&commonpb.KeyValue{KeyStrindex: 1}),
		"a key below":         attribute(&commonpb.KeyValue{KeyStrindex: -1}),
		"a value beyond":      attribute(&commonpb.KeyValue{Value: text(1)}),
		"a value below":       attribute(&commonpb.KeyValue{Value: text(-1)}),
		"beyond, in an array": attribute(&commonpb.KeyValue{Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: []*commonpb.AnyValue{text(1)}}}}}),
		"beyond, in a kvlist": attribute(&commonpb.KeyValue{Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: &commonpb.KeyValueList{Values: []*commonpb.KeyValue{{Value: text(1)}}}}}}),
		"a key in a kvlist":   attribute(&commonpb.KeyValue{Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: &commonpb.KeyValueList{Values: []*commonpb.KeyValue{{KeyStrindex: 1}}}}}}),
	} {
		_, err := inlineStrings(request)
		require.Error(t, err, name)
	}
}

// TestMaxInlineBytes: one long string with many references is refused, before it takes memory.
func TestMaxInlineBytes(t *testing.T) {
	p := testProfiles()
	list := p.ResourceProfiles().At(0).Resource().Attributes().PutEmptySlice("list")
	text := strings.Repeat("x", 64<<10)
	for range 255 { // 64 KiB are left to all others
		list.AppendEmpty().SetStr(text)
	}
	_, err := inlineStrings(encodedProfiles(t, p))
	require.NoError(t, err)
	list.AppendEmpty().SetStr(text)
	request := encodedProfiles(t, p)
	require.Less(t, len(request), 128<<10)
	_, err = inlineStrings(request)
	require.ErrorContains(t, err, "more than 16777216 bytes")
}

// TestInvalidUTF8: pdata takes strings that protobuf does not; they lose what is not valid, and
// nothing else of the request.
func TestInvalidUTF8(t *testing.T) {
	p := testProfiles()
	p.ResourceProfiles().At(0).Resource().Attributes().PutStr("a\xff", "b\xff")
	inline, err := inlineStrings(encodedProfiles(t, p))
	require.NoError(t, err)
	got := pprofileotlp.NewExportRequest()
	require.NoError(t, got.UnmarshalProto(inline))
	attributes := got.Profiles().ResourceProfiles().At(0).Resource().Attributes()
	attributes.Remove("a\xff")
	require.True(t, attributes.Remove("a\uFFFD"))
	requireSame(t, testProfiles(), got.Profiles())
}

// TestDevelopmentVersion: the field numbers here are those of version 1 of the protocol.
func TestDevelopmentVersion(t *testing.T) {
	require.Equal(t, "1", pprofileotlp.DevelopmentVersion)
}

// FuzzInlineStrings: what an exporter sends says the same with strings in place.
func FuzzInlineStrings(f *testing.F) {
	f.Add(encodedProfiles(f, testProfiles()))
	f.Fuzz(func(t *testing.T, request []byte) {
		_, _ = inlineStrings(request)
		want := pprofileotlp.NewExportRequest()
		if want.UnmarshalProto(request) != nil {
			return
		}
		sent := encodedProfiles(t, want.Profiles())
		inline, err := inlineStrings(sent)
		if err != nil {
			require.ErrorContains(t, err, "more than 16777216 bytes")
			return
		}
		require.Zero(t, references(t, inline))
		got := pprofileotlp.NewExportRequest()
		require.NoError(t, got.UnmarshalProto(inline))
		if utf8.Valid(sent) {
			require.Equal(t, sent, encodedProfiles(t, got.Profiles()))
		}
	})
}
