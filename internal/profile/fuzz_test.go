package profile

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// uncleanKey is the inverse of cleanKey.
func uncleanKey(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, `\x`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		raw, _ := hex.DecodeString(after[:2])
		b.Write(raw)
		s = after[2:]
	}
}

func FuzzCleanKey(f *testing.F) {
	for _, s := range []string{"", "key", "é", "\xff", `\xff`, `\\xff`, `\`, `\x`, "\\\xff", "\\x\xff", "caf\xc3", "\ufffd", `\x5cx`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := cleanKey(s)
		require.True(t, utf8.ValidString(got))
		require.Equal(t, s, uncleanKey(got), "no two keys have one name")
		if utf8.ValidString(s) && !strings.Contains(s, `\x`) {
			require.Equal(t, s, got)
		}
		require.True(t, utf8.ValidString(clean(s)))
	})
}

// Hostile names and frames never make invalid output, and no sample is lost.
func FuzzBuild(f *testing.F) {
	f.Add("tenant", "a", "worker", "main", "", uint64(0), []byte{1, 2, 3, 4, 5, 6, 7, 8})
	f.Add("thread.id", "\xff", "\xff", "\xfe", "thread", uint64(1<<63), make([]byte, 24))
	f.Add("", "", "", "", "", uint64(1<<64-1), []byte(nil))
	f.Fuzz(func(t *testing.T, key, value, comm, function, prefix string, time uint64, raw []byte) {
		var frames []uint64
		for ; len(raw) >= 8; raw = raw[8:] {
			frames = append(frames, binary.LittleEndian.Uint64(raw))
		}
		opts := everything()
		opts.LabelPrefix = cleanKey(prefix) // Config.Validate refuses others
		b := NewBuilder(opts)
		r := &resolver{frames: map[uint64]Frame{}}
		for i, addr := range frames {
			r.frames[addr] = Frame{Lines: []Line{{function, value, int64(addr), int64(i)}, {Function: key}}[:1+i%2], Type: key,
				Mapping: &Mapping{Start: time, Limit: addr, Filename: comm}}
			set := labels.NewSet(i%2 == 0, labels.Label{Key: key, Value: value, Source: record.ABI(i % 4)},
				labels.Label{Key: value, Value: key, Source: record.ABIThreadContext},
				labels.Label{Key: prefix + key, Value: key, Source: record.ABIThreadContext})
			b.Add(&Sample{Process: addr % 2, TimeUnixNano: max(time+addr, 1), TID: uint32(addr), Comm: []byte(comm),
				KernelFrames: frames[:i], UserFrames: frames[i:], Set: set, Link: labels.Link{SpanID: [8]byte{1}, TraceID: [16]byte{1}},
				UserStack: record.Outcome(i)})
		}
		p, stats := buildOne(b, r, max(time, 1), time)
		n := 0
		for _, s := range flatten(t, p) {
			n += len(s.times)
		}
		require.Equal(t, len(frames), n)
		require.Equal(t, uint64(n), stats.Samples)
	})
}
