//go:build linux && (amd64 || arm64)

package bpf

import (
	"bytes"
	"errors"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fuzz"
)

// Whatever bytes a record has, its slices lie within them or it is refused.
func FuzzRecord(f *testing.F) {
	whole := make([]byte, record.SampleHeaderBytes+16+8+16)
	whole[48], whole[50], whole[52] = 1, 2, 16 // kernel frames, user frames, label bytes
	seeds := [][]byte{whole, whole[:record.SampleHeaderBytes], whole[:len(whole)-1]}
	fuzz.Run(f, seeds, func(t testing.TB, b []byte) {
		var r Record
		r.raw = b
		if err := r.parse(); err != nil {
			var format *FormatError
			if !errors.As(err, &format) {
				t.Fatal(err)
			}
			return
		}
		if total := record.SampleHeaderBytes + len(r.Labels) + 8*(len(r.KernelFrames)+len(r.UserFrames)); total > len(b) {
			t.Fatalf("%d bytes of a record of %d", total, len(b))
		}
	})
}

func TestRecordSections(t *testing.T) {
	b := make([]byte, record.SampleHeaderBytes+16+8+16)
	b[48], b[50], b[52] = 1, 2, 16
	b[record.SampleHeaderBytes] = 7      // label section
	b[record.SampleHeaderBytes+16] = 8   // kernel frame
	b[record.SampleHeaderBytes+16+8] = 9 // user frames
	b[record.SampleHeaderBytes+16+16] = 10
	var r Record
	r.raw = b
	require.NoError(t, r.parse())
	require.Len(t, r.Labels, 16)
	require.EqualValues(t, 7, r.Labels[0])
	require.Equal(t, []uint64{8}, r.KernelFrames)
	require.Equal(t, []uint64{9, 10}, r.UserFrames)
	r.raw = b[:len(b)-8]
	require.Error(t, r.parse())

	// More frames than there can be.
	b = make([]byte, record.SampleHeaderBytes+8*0x1010)
	b[49], b[50] = 0x10, 0x10
	r = Record{}
	r.raw = b
	require.Error(t, r.parse())
}

// Of what is too short to be an event nothing is read.
func TestShortEvent(t *testing.T) {
	var ev record.Event
	var format *FormatError
	require.ErrorAs(t, parseEvent(&ev, make([]byte, eventBytes-1)), &format)
	b := make([]byte, eventBytes+len("/bin/true"))
	require.NoError(t, parseEvent(&ev, b[:eventBytes]))
	copy(b[eventBytes:], "/bin/true")
	raw := (*record.ProcessEvent)(unsafe.Pointer(&b[0]))
	raw.PathBytes = uint16(len("/bin/true"))
	require.NoError(t, parseEvent(&ev, b))
	require.Equal(t, "/bin/true", ev.Path)
	require.NoError(t, parseEvent(&ev, b[:len(b)-1]))
	require.Empty(t, ev.Path, "one that is not all there")
}

// A clone stays as it is when the record is read anew.
func TestRecordClone(t *testing.T) {
	b := make([]byte, record.SampleHeaderBytes+8+8+8)
	h := header(b)
	h.LabelBytes, h.KernelFrames, h.UserFrames, h.Comm[0] = 8, 1, 1, 'a'
	fill := func(v byte) {
		h.Comm[0] = v
		for i := range b[record.SampleHeaderBytes:] {
			b[record.SampleHeaderBytes+i] = v
		}
	}
	var r, same Record
	fill('a')
	require.NoError(t, r.Parse(b))
	require.NoError(t, same.Parse(bytes.Clone(b)))
	same.frames = nil
	clone := r.Clone()
	fill('b')
	require.NoError(t, r.Parse(b))
	require.Equal(t, same, clone)
}
