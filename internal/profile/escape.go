package profile

import (
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// cleanKey returns s as valid UTF-8; different strings stay different.
func cleanKey(s string) string { return labels.Escape(s) }

// clean is cleanKey for strings that are for reading: text is left as it is.
func clean(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return cleanKey(s)
}

// CleanMap makes keys and string values of a resource valid: parts of them come
// from the target. A key that is empty, or that equals another one once it is
// escaped, goes.
func CleanMap(m pcommon.Map) {
	var bad []string
	for k, v := range m.All() {
		cleanValue(v)
		if k == "" || !utf8.ValidString(k) {
			bad = append(bad, k)
		}
	}
	for _, k := range bad {
		if to := clean(k); to != "" {
			if _, taken := m.Get(to); !taken {
				copied := pcommon.NewValueEmpty()
				v, _ := m.Get(k)
				v.CopyTo(copied)
				copied.MoveTo(m.PutEmpty(to))
			}
		}
		m.Remove(k)
	}
}

func cleanValue(v pcommon.Value) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		if s := v.Str(); !utf8.ValidString(s) {
			v.SetStr(clean(s))
		}
	case pcommon.ValueTypeMap:
		CleanMap(v.Map())
	case pcommon.ValueTypeSlice:
		for _, e := range v.Slice().All() {
			cleanValue(e)
		}
	}
}
