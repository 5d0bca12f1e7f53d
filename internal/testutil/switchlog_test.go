// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSwitchLogWindow(t *testing.T) {
	log := &SwitchLog{Tenants: []string{"a", "b"}, Switches: []Switch{
		{MonoNs: 1000, CPUNs: 0, Tenant: 0},
		{MonoNs: 2000, CPUNs: 500, Tenant: 1}, // half of the time on the CPU
		{MonoNs: 3000, CPUNs: 1500, Tenant: 0},
		{MonoNs: 4000, CPUNs: 2500, Tenant: switchLogNoTenant},
		{MonoNs: 5000, CPUNs: 3500, Tenant: switchLogNoTenant},
	}}
	tests := []struct {
		from, to uint64
		want     map[string]time.Duration
	}{
		{1000, 5000, map[string]time.Duration{"a": 1500, "b": 1000}},
		{1000, 2000, map[string]time.Duration{"a": 500}},
		{1500, 2500, map[string]time.Duration{"a": 250, "b": 500}},
		{2000, 3000, map[string]time.Duration{"b": 1000}},
		{2200, 2300, map[string]time.Duration{"b": 100}},
		{4000, 5000, map[string]time.Duration{}},
	}
	for _, tt := range tests {
		got, err := log.Window(tt.from, tt.to)
		require.NoError(t, err)
		require.Equal(t, tt.want, got, "%d to %d", tt.from, tt.to)
	}
	for _, w := range [][2]uint64{{999, 2000}, {1000, 5001}, {2000, 2000}, {3000, 2000}} {
		_, err := log.Window(w[0], w[1])
		require.Error(t, err, "%v", w)
	}
}

func TestSwitchLogAt(t *testing.T) {
	log := &SwitchLog{Tenants: []string{"a", "b"}, Switches: []Switch{
		{MonoNs: 1000, Tenant: 0}, {MonoNs: 2000, Tenant: 1}, {MonoNs: 3000, Tenant: 0}, {MonoNs: 4000, Tenant: switchLogNoTenant},
	}}
	for _, tt := range []struct {
		from, to uint64
		current  []string
		next     string
	}{
		{1000, 1999, []string{"a"}, "b"},
		{1500, 1500, []string{"a"}, "b"},
		{1999, 2000, []string{"a", "b"}, "a"},
		{1000, 3999, []string{"a", "b"}, ""},
		{2000, 2000, []string{"b"}, "a"},
	} {
		current, next, ok := log.At(tt.from, tt.to)
		require.True(t, ok)
		require.Equal(t, tt.current, current, "%d to %d", tt.from, tt.to)
		require.Equal(t, tt.next, next, "%d to %d", tt.from, tt.to)
	}
	for _, w := range [][2]uint64{{999, 1500}, {3000, 4000}, {2000, 1000}} {
		_, _, ok := log.At(w[0], w[1])
		require.False(t, ok, "%v", w)
	}
}

func TestParseSwitchLog(t *testing.T) {
	header := switchLogHeader{RecordBytes: 24, Tenants: 2, Capacity: 9, Count: 1, PID: 7, TID: 8}
	copy(header.Magic[:], switchLogMagic)
	copy(header.Names[0][:], "A")
	copy(header.Names[1][:], "B")
	encode := func(h switchLogHeader) []byte {
		var b bytes.Buffer
		require.NoError(t, binary.Write(&b, binary.LittleEndian, h))
		require.NoError(t, binary.Write(&b, binary.LittleEndian, [2]Switch{{MonoNs: 5, CPUNs: 6, Tenant: 1}, {MonoNs: 9}}))
		return b.Bytes()
	}
	log, err := parseSwitchLog(encode(header))
	require.NoError(t, err)
	require.Equal(t, &SwitchLog{PID: 7, TID: 8, Tenants: []string{"A", "B"}, Switches: []Switch{{MonoNs: 5, CPUNs: 6, Tenant: 1}}}, log)

	for name, change := range map[string]func(*switchLogHeader){
		"magic":   func(h *switchLogHeader) { h.Magic[0] = 'x' },
		"count":   func(h *switchLogHeader) { h.Count = 3 },
		"record":  func(h *switchLogHeader) { h.RecordBytes = 16 },
		"tenants": func(h *switchLogHeader) { h.Tenants = 9 },
	} {
		h := header
		change(&h)
		_, err := parseSwitchLog(encode(h))
		require.Error(t, err, name)
	}
	_, err = parseSwitchLog([]byte("short"))
	require.Error(t, err)
}
