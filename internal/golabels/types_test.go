package golabels

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// Codes of entries in typeAbbrevs.
const (
	codeUnit    = 1
	codeNamed   = 2 // a name and nothing else
	codePointer = 3
	codeTypedef = 4
	codeStruct  = 5
	codeMember  = 6
	codeNested  = 7 // a member with children
)

func typeAbbrevs() []byte {
	const formData1, formRef4 = 0x0b, 0x13
	return []byte{
		codeUnit, 0x11, 1, attrName, formString, 0, 0,
		codeNamed, tagMember, 0, attrName, formString, 0, 0,
		codePointer, tagPointer, 0, attrName, formString, attrType, formRef4, 0, 0,
		codeTypedef, tagTypedef, 0, attrName, formString, attrType, formRef4, 0, 0,
		codeStruct, tagStructure, 1, attrName, formString, attrByteSize, formUdata, 0, 0,
		codeMember, tagMember, 0, attrName, formString, attrLocation, formUdata, attrType, formRef4, 0, 0,
		codeNested, tagMember, 1, attrName, formString, 0, 0,
		0,
	}
}

// runtimeUnit is a unit of the runtime with other contents.
func runtimeUnit(contents []byte) []byte {
	b := []byte{4, 0, 0, 0, 0, 0, wordBytes, codeUnit}
	b = append(b, typesUnit+"\x00"...)
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b)+len(contents))), append(b, contents...)...)
}

// writer writes types, which know each other by name.
type writer struct {
	b    []byte
	at   map[string]uint32
	refs map[int]string
}

func newWriter() *writer { return &writer{at: map[string]uint32{}, refs: map[int]string{}} }

func (w *writer) entry(code byte, name string) {
	w.b = append(append(append(w.b, code), name...), 0)
}

func (w *writer) ref(to string) {
	w.refs[len(w.b)] = to
	w.b = append(w.b, 0, 0, 0, 0)
}

// named writes a typedef or a pointer, that others know as id.
func (w *writer) named(code byte, id, name, to string) {
	w.at[id] = uint32(len(runtimeUnit(w.b)))
	w.entry(code, name)
	w.ref(to)
}

type field struct {
	name, of string
	at       uint64
}

func (w *writer) structure(id, name string, size uint64, fields ...field) {
	w.at[id] = uint32(len(runtimeUnit(w.b)))
	w.entry(codeStruct, name)
	w.b = binary.AppendUvarint(w.b, size)
	for _, f := range fields {
		w.entry(codeMember, f.name)
		w.b = binary.AppendUvarint(w.b, f.at)
		w.ref(f.of)
	}
	w.b = append(w.b, 0)
}

func (w *writer) unit() []byte {
	for at, to := range w.refs {
		binary.LittleEndian.PutUint32(w.b[at:], w.at[to])
	}
	return runtimeUnit(w.b)
}

// labelTypes are those of the labels, as Go 1.26 has them; change may change the names.
func (w *writer) labelTypes(change map[string]string) {
	name := func(of string) string {
		if to, ok := change[of]; ok {
			return to
		}
		return of
	}
	w.structure("string", name("string"), 16, field{"str", "", 0}, field{"len", "", 8})
	w.structure("other", "int", 8)
	w.named(codePointer, "*label", "*label.Label", name("label"))
	w.structure("label struct", "label.Label", 32, field{name("Key"), "string", 0}, field{"Value", name("type of values"), 16})
	w.named(codeTypedef, "label", "label.Label", "label struct")
	w.structure("labelMap struct", "runtime/pprof.labelMap", 24, field{"Set", name("set"), 0})
	w.named(codeTypedef, "labelMap", "runtime/pprof.labelMap", "labelMap struct")
	w.structure("set struct", "label.Set", 24, field{"List", "[]label", 0})
	w.named(codeTypedef, "set", "label.Set", "set struct")
	w.structure("[]label", "[]label.Label", 24, field{name("array"), "*label", 0}, field{"len", "", 8}, field{"cap", "", 16})
}

func (w *writer) runtimeTypes() {
	w.structure("g", "runtime.g", 400, field{"m", "", 48}, field{"labels", "", 352})
	w.structure("m", "runtime.m", 400, field{"procid", "", 64}, field{"curg", "", 184})
}

func searched(t *testing.T, info []byte) *types {
	found := newTypes()
	require.NoError(t, found.search(bytes.NewReader(info), tableOf(typeAbbrevs())))
	return found
}

func labels(change map[string]string) *writer {
	w := newWriter()
	if _, ok := change["type of values"]; !ok && change != nil {
		change["type of values"] = "string"
	}
	w.labelTypes(change)
	w.runtimeTypes()
	return w
}

// Types are found wherever the window ends, and behind any number of other bytes.
func TestTypesAnywhere(t *testing.T) {
	want, ok := layoutOfRelease(26)
	require.True(t, ok)
	all := len(labels(map[string]string{}).b)
	before := []int{2, 60 << 20}
	for n := windowBytes - all - 100; n < windowBytes+100; n++ {
		before = append(before, n)
	}
	for _, n := range before {
		w := newWriter()
		w.b = longName(n)
		w.labelTypes(map[string]string{"type of values": "string"})
		w.runtimeTypes()
		l, err := searched(t, w.unit()).layout()
		require.NoError(t, err, n)
		require.Equal(t, want, l, n)
	}
}

// Labels of any other form are not taken for a slice of key and value.
func TestOtherForms(t *testing.T) {
	require.Equal(t, formSlice, searched(t, labels(map[string]string{}).unit()).form)
	for of, to := range map[string]string{
		"string": "text", "label": "other", "Key": "Name", "type of values": "other", "set": "set of nothing", "array": "list",
	} {
		require.Equal(t, formOther, searched(t, labels(map[string]string{of: to}).unit()).form, of)
	}
}

// A typedef of itself, or a structure in itself, leads nowhere.
func TestTypesInACircle(t *testing.T) {
	w := newWriter()
	w.named(codeTypedef, "labelMap", "runtime/pprof.labelMap", "labelMap")
	w.runtimeTypes()
	require.Equal(t, formOther, searched(t, w.unit()).form)

	w = newWriter()
	w.structure("labelMap", "runtime/pprof.labelMap", 24, field{"Set", "labelMap", 0})
	w.runtimeTypes()
	require.Equal(t, formOther, searched(t, w.unit()).form)
}

// Structures with more than members are passed over, but those of the runtime are damaged.
func TestNestedMembers(t *testing.T) {
	nested := func(name string) []byte {
		w := newWriter()
		w.entry(codeStruct, name)
		w.b = append(w.b, 8)
		w.entry(codeNested, "inner")
		w.b = append(w.b, 0, 0)
		w.runtimeTypes()
		return w.unit()
	}
	require.NotNil(t, searched(t, nested("other")).m)
	require.ErrorIs(t, newTypes().search(bytes.NewReader(nested("runtime.g")), tableOf(typeAbbrevs())), errDamaged)
}
