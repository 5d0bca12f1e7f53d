package inlinestringsextension

import (
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

// inlineStrings returns an ExportProfilesServiceRequest with the strings that the attributes of
// resources and scopes refer to in their place. All else is as it was, the table of strings too:
// samples refer to it. It fails for what is no such message, and for references to what the
// table does not have.
func inlineStrings(request []byte) ([]byte, error) {
	table, err := stringTable(request)
	if err != nil {
		return nil, err
	}
	attribute := func(message []byte) ([]byte, error) { return inlineAttribute(table, message) }
	resource := within(edits{resourceAttributes: attribute})
	scope := within(edits{scopeAttributes: attribute})
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

// inlineAttribute is an edit of a KeyValue.
func inlineAttribute(table [][]byte, message []byte) ([]byte, error) {
	var attribute commonpb.KeyValue
	if err := proto.Unmarshal(message, &attribute); err != nil {
		return nil, err
	}
	if err := inlineKeyValue(table, &attribute); err != nil {
		return nil, err
	}
	return proto.Marshal(&attribute)
}

func inlineKeyValue(table [][]byte, attribute *commonpb.KeyValue) error {
	if attribute.KeyStrindex != 0 {
		key, err := lookUp(table, attribute.KeyStrindex)
		if err != nil {
			return err
		}
		attribute.Key, attribute.KeyStrindex = key, 0
	}
	return inlineValue(table, attribute.Value)
}

func inlineValue(table [][]byte, value *commonpb.AnyValue) error {
	switch v := value.GetValue().(type) {
	case *commonpb.AnyValue_StringValueStrindex:
		text, err := lookUp(table, v.StringValueStrindex)
		if err != nil {
			return err
		}
		value.Value = &commonpb.AnyValue_StringValue{StringValue: text}
	case *commonpb.AnyValue_ArrayValue:
		for _, element := range v.ArrayValue.GetValues() {
			if err := inlineValue(table, element); err != nil {
				return err
			}
		}
	case *commonpb.AnyValue_KvlistValue:
		for _, entry := range v.KvlistValue.GetValues() {
			if err := inlineKeyValue(table, entry); err != nil {
				return err
			}
		}
	}
	return nil
}

func lookUp(table [][]byte, index int32) (string, error) {
	if index < 0 || int(index) >= len(table) {
		return "", fmt.Errorf("string %d of a table of %d", index, len(table))
	}
	return string(table[index]), nil
}
