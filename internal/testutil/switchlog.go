// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sort"
	"time"
)

const (
	switchLogMagic    = "CLSWLOG1"
	switchLogNoTenant = 0xffffffff
)

// switchLogHeader mirrors struct switch_log_header of testdata/writers/switch_log.h.
type switchLogHeader struct {
	Magic       [8]byte
	RecordBytes uint32
	Tenants     uint32
	Capacity    uint64
	Count       uint64
	PID, TID    uint32
	Names       [8][8]byte
	Reserved    [3]uint64
}

// Switch says that a thread published the label of a tenant.
type Switch struct {
	MonoNs uint64 // CLOCK_MONOTONIC right after the publication
	CPUNs  uint64 // the thread's CPU time then
	Tenant uint32 // index into Tenants; past its end: no labels
	Pad    uint32
}

// SwitchLog is every switch of a writer in mode switch, in order.
type SwitchLog struct {
	PID, TID int
	Tenants  []string
	Switches []Switch
}

// ReadSwitchLog reads the log, which may still grow: it holds what was complete when
// it was read.
func ReadSwitchLog(path string) (*SwitchLog, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	log, err := parseSwitchLog(data)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", path, err)
	}
	return log, nil
}

func parseSwitchLog(data []byte) (*SwitchLog, error) {
	var header switchLogHeader
	headerBytes := binary.Size(header)
	if _, err := binary.Decode(data, binary.LittleEndian, &header); err != nil {
		return nil, err
	}
	recordBytes := binary.Size(Switch{})
	room := uint64(len(data)-headerBytes) / uint64(recordBytes)
	if string(header.Magic[:]) != switchLogMagic || int(header.RecordBytes) != recordBytes ||
		int(header.Tenants) > len(header.Names) || header.Count > room {
		return nil, fmt.Errorf("not a switch log: %+v", header)
	}
	log := &SwitchLog{PID: int(header.PID), TID: int(header.TID), Switches: make([]Switch, header.Count)}
	for _, name := range header.Names[:header.Tenants] {
		log.Tenants = append(log.Tenants, string(bytes.TrimRight(name[:], "\x00")))
	}
	if _, err := binary.Decode(data[headerBytes:], binary.LittleEndian, log.Switches); err != nil {
		return nil, err
	}
	return log, nil
}

// Window returns the CPU time of each tenant between two times of CLOCK_MONOTONIC.
// A dwell that crosses an end of the window counts in proportion. The log has to
// cover the window.
func (l *SwitchLog) Window(from, to uint64) (map[string]time.Duration, error) {
	n := len(l.Switches)
	if n == 0 || from >= to || from < l.Switches[0].MonoNs || to > l.Switches[n-1].MonoNs {
		return nil, fmt.Errorf("the switch log does not cover %d to %d", from, to)
	}
	sums := map[string]time.Duration{}
	first := sort.Search(n, func(i int) bool { return l.Switches[i].MonoNs > from }) - 1
	for i := first; i+1 < n && l.Switches[i].MonoNs < to; i++ {
		if int64(l.Switches[i].Tenant) < int64(len(l.Tenants)) {
			sums[l.Tenants[l.Switches[i].Tenant]] += dwellIn(l.Switches[i], l.Switches[i+1], from, to)
		}
	}
	return sums, nil
}

// At returns the tenants that were current in a span of CLOCK_MONOTONIC, and the one that
// followed (it is published just before its time in the log). It is false where the log
// does not cover the span.
func (l *SwitchLog) At(from, to uint64) (current []string, next string, ok bool) {
	n := len(l.Switches)
	if n == 0 || from > to || from < l.Switches[0].MonoNs || to >= l.Switches[n-1].MonoNs {
		return nil, "", false
	}
	name := func(s Switch) string {
		if int64(s.Tenant) >= int64(len(l.Tenants)) {
			return ""
		}
		return l.Tenants[s.Tenant]
	}
	after := func(t uint64) int { return sort.Search(n, func(i int) bool { return l.Switches[i].MonoNs > t }) }
	first, following := after(from)-1, after(to)
	for _, s := range l.Switches[first:following] {
		if tenant := name(s); !slices.Contains(current, tenant) {
			current = append(current, tenant)
		}
	}
	return current, name(l.Switches[following]), true
}

// dwellIn is the CPU time from one switch to the next as far as it lies in the window.
func dwellIn(start, end Switch, from, to uint64) time.Duration {
	cpu, wall := end.CPUNs-start.CPUNs, end.MonoNs-start.MonoNs
	inside := min(end.MonoNs, to) - max(start.MonoNs, from)
	if inside == wall {
		return time.Duration(cpu)
	}
	return time.Duration(float64(cpu) * float64(inside) / float64(wall))
}
