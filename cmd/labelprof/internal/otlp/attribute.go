// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

func newProcess(known sample.Texts, resource pcommon.Resource) *sample.Process {
	p := &sample.Process{}
	for key, value := range resource.Attributes().All() {
		if len(p.Attributes) == sample.MaxAttributes {
			break
		}
		a := newAttribute(known, key, value)
		p.Attributes = append(p.Attributes, a)
		switch {
		case a.Key == sample.KeyPID && a.IsNumber:
			p.PID = a.Number
		case a.Key == sample.KeyProcessName:
			p.Name = a.Text
		}
	}
	return p
}

// newAttribute copies a key and a value.
func newAttribute(known sample.Texts, key string, value pcommon.Value) sample.Attribute {
	a := sample.Attribute{Key: known.Of(key)}
	switch value.Type() {
	case pcommon.ValueTypeInt:
		a.Number, a.IsNumber = value.Int(), true
		a.Text = strconv.FormatInt(a.Number, 10)
	case pcommon.ValueTypeBytes:
		a.Text = known.Of(string(value.Bytes().AsRaw()))
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		a.Text = fmt.Sprintf("(%s)", strings.ToLower(value.Type().String())) // no label is one
	default:
		a.Text = known.Of(value.AsString())
	}
	return a
}

func hexID(id []byte) string {
	for _, b := range id {
		if b != 0 {
			return hex.EncodeToString(id)
		}
	}
	return ""
}
