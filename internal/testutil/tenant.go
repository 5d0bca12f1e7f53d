// SPDX-License-Identifier: Apache-2.0

package testutil

// SwitchTenant returns the index of the tenant that a thread context of a writer in
// mode switch stands for: byte i of both ids is (index + 1) << 4 | i.
func SwitchTenant(traceID [16]byte, spanID [8]byte) (index int, ok bool) {
	index = int(traceID[0]>>4) - 1
	if index < 0 {
		return 0, false
	}
	for i, b := range traceID {
		if b != byte((index+1)<<4|i) || i < len(spanID) && spanID[i] != b {
			return 0, false
		}
	}
	return index, true
}

// SharesTenant returns the indexes of tenant and route that the trace id of a writer
// in mode shares stands for.
func SharesTenant(traceID [16]byte) (tenant, route int) {
	return int(traceID[0]) - 1, int(traceID[1]) - 1
}
