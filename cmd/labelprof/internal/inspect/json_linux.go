// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect

import (
	"bytes"
	"encoding/json"
	"io"
	"unicode/utf8"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
)

// labelText is a label in JSON: {"key": ..., "value": ...}, where a key or value
// that is no UTF-8 becomes "key_base64" or "value_base64".
type labelText struct{ key, value string }

// MarshalJSON implements json.Marshaler.
func (l labelText) MarshalJSON() ([]byte, error) {
	fields := map[string]any{}
	for name, s := range map[string]string{"key": l.key, "value": l.value} {
		if utf8.ValidString(s) {
			fields[name] = s
		} else {
			fields[name+"_base64"] = []byte(s)
		}
	}
	return json.Marshal(fields)
}

// writeJSON prints {"processes": [...]}. What is not printable is escaped: labels
// may end up on a terminal.
func writeJSON(w io.Writer, reports []processReport) error {
	for i := range reports {
		r := &reports[i]
		if r.Sources == nil {
			r.Sources = []sourceReport{} // rather than null
		}
		if r.Threads == nil {
			r.Threads = []threadReport{}
		}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(map[string]any{"processes": reports}); err != nil {
		return err
	}
	_, err := w.Write(terminal.EscapeJSON(b.Bytes()))
	return err
}
