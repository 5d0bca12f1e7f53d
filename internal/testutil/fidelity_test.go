// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"testing"

	"github.com/stretchr/testify/require"
)

// What VerifyFidelity accepts is shown against the writers themselves.
func TestVerifyFidelityRefuses(t *testing.T) {
	check := func(body string) string { return fmt.Sprintf("%s:%016x", body, fnv1a([]byte(body))) }
	n, err := VerifyFidelity(12, check("12:345"), fidelityPad(345))
	require.NoError(t, err)
	require.EqualValues(t, 345, n)

	for name, tt := range map[string]struct{ check, pad string }{
		"foreign":      {check("13:345"), fidelityPad(345)},
		"other set":    {check("12:346"), fidelityPad(345)},
		"cut pad":      {check("12:345"), fidelityPad(345)[1:]},
		"cut check":    {check("12:345")[:12], fidelityPad(345)},
		"garbage":      {"\xdb\xdb\xdb", fidelityPad(345)},
		"no number":    {check("x:y"), fidelityPad(345)},
		"empty":        {"", ""},
		"wrong digits": {"12:345:0000000000000000", fidelityPad(345)},
	} {
		_, err := VerifyFidelity(12, tt.check, tt.pad)
		require.Error(t, err, name)
	}
}

func TestVerifyFidelityIDsRefuses(t *testing.T) {
	var trace [16]byte
	var span [8]byte
	binary.BigEndian.PutUint32(trace[:], 12)
	binary.BigEndian.PutUint64(trace[4:], 345)
	binary.BigEndian.PutUint32(trace[12:], uint32(fnv1a(trace[:12])))
	binary.BigEndian.PutUint64(span[:], fnv1a(trace[:]))
	n, err := VerifyFidelityIDs(12, trace, span)
	require.NoError(t, err)
	require.EqualValues(t, 345, n)

	_, err = VerifyFidelityIDs(13, trace, span)
	require.ErrorContains(t, err, "foreign")
	for i := range trace {
		damaged := trace
		damaged[i] ^= 1
		_, err := VerifyFidelityIDs(12, damaged, span)
		require.Error(t, err, "byte %d", i)
	}
	span[7] ^= 1
	_, err = VerifyFidelityIDs(12, trace, span)
	require.Error(t, err)
}

func TestSwitchTenant(t *testing.T) {
	var trace [16]byte
	var span [8]byte
	for i := range trace {
		trace[i] = byte(3<<4 | i)
	}
	copy(span[:], trace[:])
	tenant, ok := SwitchTenant(trace, span)
	require.True(t, ok)
	require.Equal(t, 2, tenant)
	span[3]++
	_, ok = SwitchTenant(trace, span)
	require.False(t, ok)
	_, ok = SwitchTenant([16]byte{}, [8]byte{})
	require.False(t, ok)
}

func TestFNV1a(t *testing.T) {
	for _, text := range []string{"", "a", "12:345"} {
		want := fnv.New64a()
		want.Write([]byte(text))
		require.Equal(t, want.Sum64(), fnv1a([]byte(text)), "%q", text)
	}
}
