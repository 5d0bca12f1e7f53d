// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

const (
	fidelityMaxPadBytes   = 200
	fidelityMaxCheckBytes = 64
)

// VerifyFidelity checks the labels `check` and `pad` of a thread of a writer in mode
// fidelity: that they are whole, of this thread, and of one and the same set. It
// returns the number of the set. testdata/writers/mode_fidelity.c has the format.
func VerifyFidelity(tid uint32, check, pad string) (uint64, error) {
	owner, n, err := ParseFidelityCheck(check)
	if err != nil {
		return 0, err
	}
	if owner != tid {
		return n, fmt.Errorf("check %q: foreign label on thread %d", check, tid)
	}
	if !isFidelityPad(pad, n) {
		return n, fmt.Errorf("pad %q on set %d: want %q", pad, n, fidelityPad(n))
	}
	return n, nil
}

// ParseFidelityCheck checks the label `check` for itself, and returns the thread (of a
// program in Go: the goroutine) and the number of the set that it is of.
func ParseFidelityCheck(check string) (owner uint32, n uint64, err error) {
	first, rest, _ := strings.Cut(check, ":")
	second, _, _ := strings.Cut(rest, ":")
	wide, err := strconv.ParseUint(first, 10, 32)
	if err != nil {
		return 0, 0, fmt.Errorf("check %q: %w", check, err)
	}
	n, err = strconv.ParseUint(second, 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("check %q: %w", check, err)
	}
	owner = uint32(wide)
	var buffer [fidelityMaxCheckBytes]byte
	if want := appendFidelityCheck(buffer[:0], owner, n); check != string(want) {
		return 0, 0, fmt.Errorf("check %q: want %q", check, want)
	}
	return owner, n, nil
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

// appendFidelityCheck appends the value of `check`.
func appendFidelityCheck(to []byte, tid uint32, n uint64) []byte {
	to = strconv.AppendUint(to, uint64(tid), 10)
	to = append(to, ':')
	to = strconv.AppendUint(to, n, 10)
	sum := fnv1a(to)
	to = append(to, ':')
	for shift := 60; shift >= 0; shift -= 4 {
		to = append(to, "0123456789abcdef"[sum>>shift&15])
	}
	return to
}

func fidelityPad(n uint64) string {
	pad := make([]byte, fidelityPadBytes(n))
	for i := range pad {
		pad[i] = fidelityPadByte(n, i)
	}
	return string(pad)
}

func isFidelityPad(pad string, n uint64) bool {
	if len(pad) != fidelityPadBytes(n) {
		return false
	}
	for i := range len(pad) {
		if pad[i] != fidelityPadByte(n, i) {
			return false
		}
	}
	return true
}

func fidelityPadBytes(n uint64) int { return int(mix(n) % (fidelityMaxPadBytes + 1)) }

func fidelityPadByte(n uint64, i int) byte { return 'a' + byte(mix(n+uint64(i)+1)%26) }

// mix is the finalizer of splitmix64.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// fnv1a is FNV-1a of 64 bits. Unlike that of hash/fnv it allocates nothing: this is done
// a hundred million times.
func fnv1a(data []byte) uint64 {
	hash := uint64(0xcbf29ce484222325)
	for _, b := range data {
		hash = (hash ^ uint64(b)) * 0x100000001b3
	}
	return hash
}
