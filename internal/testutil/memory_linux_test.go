// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stopped reads the labels of a stopped writer from its memory, by the ABIs alone.
type stopped struct {
	mem *os.File
}

// published is what a thread has published: labels, or a thread context.
type published struct {
	labels  map[string]string // v0, v1
	attrs   []string          // thread context, by key index
	traceID [16]byte
	spanID  [8]byte
}

var errUpdating = errors.New("between two sets")

func (s stopped) bytes(addr, n uint64) ([]byte, error) {
	p := make([]byte, n)
	_, err := s.mem.ReadAt(p, int64(addr))
	return p, err
}

func (s stopped) words(addr uint64, n int) ([]uint64, error) {
	p, err := s.bytes(addr, uint64(n)*8)
	w := make([]uint64, n)
	for i := range w {
		w[i] = binary.LittleEndian.Uint64(p[i*8:])
	}
	return w, err
}

func (s stopped) read(variant string, variable uint64) (published, error) {
	head, err := s.words(variable, 1)
	if err != nil {
		return published{}, err
	}
	switch {
	case strings.HasPrefix(variant, "writer-v0"):
		return s.readSet(variable)
	case strings.HasPrefix(variant, "writer-v1"):
		return s.readSet(head[0])
	default:
		return s.readContext(head[0])
	}
}

func (s stopped) readSet(addr uint64) (published, error) {
	set, err := s.words(addr, 2)
	if err != nil {
		return published{}, err
	}
	if set[1] == 0 {
		return published{}, errUpdating
	}
	p := published{labels: map[string]string{}}
	for i := range set[1] {
		label, err := s.words(set[0]+32*i, 4)
		if err != nil {
			return p, err
		}
		key, err := s.bytes(label[1], label[0])
		if err != nil {
			return p, err
		}
		value, err := s.bytes(label[3], label[2])
		if err != nil {
			return p, err
		}
		p.labels[string(key)] = string(value)
	}
	return p, nil
}

func (s stopped) readContext(addr uint64) (published, error) {
	var p published
	head, err := s.bytes(addr, 28)
	if err != nil {
		return p, err
	}
	if head[24] == 0 {
		return p, errUpdating
	}
	if head[24] != 1 {
		return p, fmt.Errorf("valid is %d", head[24])
	}
	copy(p.traceID[:], head)
	copy(p.spanID[:], head[16:])
	attrs, err := s.bytes(addr+28, uint64(binary.LittleEndian.Uint16(head[26:])))
	for len(attrs) >= 2 {
		if int(attrs[0]) != len(p.attrs) || int(attrs[1]) > len(attrs)-2 {
			return p, fmt.Errorf("attribute %d: % x", len(p.attrs), attrs)
		}
		p.attrs = append(p.attrs, string(attrs[2:2+attrs[1]]))
		attrs = attrs[2+attrs[1]:]
	}
	return p, err
}

// whileStopped stops a writer, all its threads, and runs look.
func whileStopped(t *testing.T, w *Writer, look func(stopped)) {
	t.Helper()
	w.Signal(syscall.SIGSTOP)
	require.Eventually(t, func() bool {
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", w.PID))
		require.NoError(t, err)
		for _, task := range tasks {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/stat", w.PID, task.Name()))
			if err != nil || !strings.Contains(string(stat), ") T ") {
				return false
			}
		}
		return true
	}, time.Minute, 100*time.Microsecond)
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", w.PID))
	require.NoError(t, err)
	look(stopped{mem})
	require.NoError(t, mem.Close())
	w.Signal(syscall.SIGCONT)
}
