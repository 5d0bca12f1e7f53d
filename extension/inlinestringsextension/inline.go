package inlinestringsextension

import (
	"bytes"
	"fmt"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Field numbers of the messages that are gone through: opentelemetry-proto v1.10,
// collector/profiles/v1development, profiles/v1development, resource/v1 and common/v1.
const (
	requestResourceProfiles  protowire.Number = 1
	requestDictionary        protowire.Number = 2
	dictionaryStringTable    protowire.Number = 5
	resourceProfilesResource protowire.Number = 1
	resourceProfilesScopes   protowire.Number = 2
	scopeProfilesScope       protowire.Number = 1
	resourceAttributes       protowire.Number = 1
	scopeAttributes          protowire.Number = 3
)

// maxInlineBytes bounds the strings that are put in place in one request: as many references to
// a long string as a sender likes take next to nothing until then.
const maxInlineBytes = 16 << 20

// inlineStrings returns an ExportProfilesServiceRequest with the strings that the attributes of
// resources and scopes refer to in their place. All else is as it was, the table of strings too:
// samples refer to it. It fails for what is no such message, for references to what the table
// does not have, and for more than [maxInlineBytes].
func inlineStrings(request []byte) ([]byte, error) {
	table, err := stringTable(request)
	if err != nil {
		return nil, err
	}
	l := &inliner{table: table, left: maxInlineBytes}
	resource := within(edits{resourceAttributes: l.attribute})
	scope := within(edits{scopeAttributes: l.attribute})
	return within(edits{requestResourceProfiles: within(edits{
		resourceProfilesResource: resource,
		resourceProfilesScopes:   within(edits{scopeProfilesScope: scope}),
	})})(request)
}

// stringTable returns the strings of a request's dictionary, within the request. Of several
// dictionaries, which protobuf merges, a table has the strings of all.
func stringTable(request []byte) (table [][]byte, err error) {
	err = fields(request, func(number protowire.Number, _, dictionary []byte) error {
		if number != requestDictionary {
			return nil
		}
		return fields(dictionary, func(number protowire.Number, _, text []byte) error {
			if number == dictionaryStringTable {
				table = append(table, text)
			}
			return nil
		})
	})
	return table, err
}

// edits return messages as they shall be, by the number of their field.
type edits map[protowire.Number]edit

type edit func(message []byte) ([]byte, error)

// within is the edit of a message by edits of those in it.
func within(inner edits) edit {
	return func(message []byte) ([]byte, error) {
		out := make([]byte, 0, len(message))
		err := fields(message, func(number protowire.Number, whole, content []byte) error {
			edit := inner[number]
			if edit == nil {
				out = append(out, whole...)
				return nil
			}
			edited, err := edit(content)
			if err != nil {
				return err
			}
			out = protowire.AppendTag(out, number, protowire.BytesType)
			out = protowire.AppendBytes(out, edited)
			return nil
		})
		return out, err
	}
}

// fields calls visit for each field of a message: with the whole of it, and with its content if
// that is bytes. All other fields have no content and the number 0, as a field of a known number
// and an unknown type is an unknown one.
func fields(message []byte, visit func(number protowire.Number, whole, content []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeField(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		whole := message[:n]
		message = message[n:]
		var content []byte
		if kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(whole)
			content, _ = protowire.ConsumeBytes(whole[tag:])
		} else {
			number = 0
		}
		if err := visit(number, whole, content); err != nil {
			return err
		}
	}
	return nil
}

// An inliner edits the attributes of one request.
type inliner struct {
	table [][]byte
	left  int // of maxInlineBytes
}

// attribute is the edit of a KeyValue.
func (l *inliner) attribute(message []byte) ([]byte, error) {
	var attribute commonpb.KeyValue
	if err := proto.Unmarshal(message, &attribute); err != nil {
		return nil, err
	}
	if err := l.keyValue(&attribute); err != nil {
		return nil, err
	}
	return proto.Marshal(&attribute)
}

func (l *inliner) keyValue(attribute *commonpb.KeyValue) error {
	if attribute.KeyStrindex != 0 {
		key, err := l.lookUp(attribute.KeyStrindex)
		if err != nil {
			return err
		}
		attribute.Key, attribute.KeyStrindex = key, 0
	}
	return l.value(attribute.Value)
}

func (l *inliner) value(value *commonpb.AnyValue) error {
	switch v := value.GetValue().(type) {
	case *commonpb.AnyValue_StringValueStrindex:
		text, err := l.lookUp(v.StringValueStrindex)
		if err != nil {
			return err
		}
		value.Value = &commonpb.AnyValue_StringValue{StringValue: text}
	case *commonpb.AnyValue_ArrayValue:
		for _, element := range v.ArrayValue.GetValues() {
			if err := l.value(element); err != nil {
				return err
			}
		}
	case *commonpb.AnyValue_KvlistValue:
		for _, entry := range v.KvlistValue.GetValues() {
			if err := l.keyValue(entry); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookUp returns a string of the table, as valid UTF-8: protobuf takes no other in this place,
// and one attribute must not lose the request of all others.
func (l *inliner) lookUp(index int32) (string, error) {
	if index < 0 || int(index) >= len(l.table) {
		return "", fmt.Errorf("string %d of a table of %d", index, len(l.table))
	}
	text := l.table[index]
	if l.left -= len(text); l.left < 0 {
		return "", fmt.Errorf("strings of resources take more than %d bytes in place", maxInlineBytes)
	}
	return string(bytes.ToValidUTF8(text, []byte("\uFFFD"))), nil
}
