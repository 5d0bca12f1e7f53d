// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"strings"
)

const fidelityMaxPadBytes = 200

// VerifyFidelity checks the labels `check` and `pad` of a thread of a writer in mode
// fidelity: that they are whole, of this thread, and of one and the same set. It
// returns the number of the set. testdata/writers/mode_fidelity.c has the format.
func VerifyFidelity(tid uint32, check, pad string) (uint64, error) {
	body, sum, ok := cutLast(check, ":")
	if !ok {
		return 0, fmt.Errorf("check %q: no checksum", check)
	}
	if want := fmt.Sprintf("%016x", fnv1a([]byte(body))); sum != want {
		return 0, fmt.Errorf("check %q: the checksum of %q is %s", check, body, want)
	}
	var gotTID uint32
	var n uint64
	if _, err := fmt.Sscanf(body, "%d:%d", &gotTID, &n); err != nil {
		return 0, fmt.Errorf("check %q: %w", check, err)
	}
	if gotTID != tid {
		return n, fmt.Errorf("check %q: foreign label on thread %d", check, tid)
	}
	if want := fidelityPad(n); pad != want {
		return n, fmt.Errorf("pad %q on set %d: want %q", pad, n, want)
	}
	return n, nil
}

// VerifyFidelityIDs checks the ids of a thread context in mode fidelity, like
// VerifyFidelity.
func VerifyFidelityIDs(tid uint32, traceID [16]byte, spanID [8]byte) (uint64, error) {
	if got, want := binary.BigEndian.Uint32(traceID[12:]), uint32(fnv1a(traceID[:12])); got != want {
		return 0, fmt.Errorf("trace id %x: checksum %08x", traceID, want)
	}
	if got, want := binary.BigEndian.Uint64(spanID[:]), fnv1a(traceID[:]); got != want {
		return 0, fmt.Errorf("span id %x: not of trace %x", spanID, traceID)
	}
	n := binary.BigEndian.Uint64(traceID[4:])
	if got := binary.BigEndian.Uint32(traceID[:]); got != tid {
		return n, fmt.Errorf("trace id %x: foreign id on thread %d", traceID, tid)
	}
	return n, nil
}

func fidelityPad(n uint64) string {
	pad := make([]byte, mix(n)%(fidelityMaxPadBytes+1))
	for i := range pad {
		pad[i] = 'a' + byte(mix(n+uint64(i)+1)%26)
	}
	return string(pad)
}

// mix is the finalizer of splitmix64.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func fnv1a(data []byte) uint64 {
	hash := fnv.New64a()
	hash.Write(data)
	return hash.Sum64()
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
