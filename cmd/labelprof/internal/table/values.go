// SPDX-License-Identifier: Apache-2.0

package table

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// value is the value of a label, or its absence.
type value struct {
	text    string
	present bool
}

// rowKey is the values of a row, each absent or with its length: see encodeValues.
type rowKey string

// encodeValues is unambiguous whatever bytes the values hold.
func encodeValues(values []value) rowKey {
	var b []byte
	for _, v := range values {
		if !v.present {
			b = append(b, 0)
			continue
		}
		b = binary.AppendUvarint(append(b, 1), uint64(len(v.text)))
		b = append(b, v.text...)
	}
	return rowKey(b)
}

// labelled says whether any of the labels is there.
func labelled(values []value) bool {
	return slices.ContainsFunc(values, func(v value) bool { return v.present })
}

func compareValues(a, b value) int {
	return cmp.Compare(a.text, b.text)
}
