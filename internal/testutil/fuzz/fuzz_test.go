// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMutatorIsDeterministic(t *testing.T) {
	corpus := [][]byte{nil, []byte("a short one"), bytes.Repeat([]byte("x"), maxInputBytes)}
	a, b, other := newMutator(7, corpus), newMutator(7, corpus), newMutator(8, corpus)
	differ := false
	for range 20_000 {
		x := a.next()
		require.LessOrEqual(t, len(x), maxInputBytes)
		require.True(t, bytes.Equal(x, b.next()))
		differ = differ || !bytes.Equal(x, other.next())
	}
	require.True(t, differ)
	require.Equal(t, "a short one", string(corpus[1]), "the corpus stays")
}

// Few mutations away from a seed, everything can be reached.
func TestMutatorReaches(t *testing.T) {
	m := newMutator(1, [][]byte{make([]byte, 16), []byte("0123456789abcdef")})
	want := map[string]func([]byte) bool{
		"shorter":        func(b []byte) bool { return len(b) < 16 },
		"longer":         func(b []byte) bool { return len(b) > 16 },
		"u64 of ones":    func(b []byte) bool { return bytes.HasPrefix(b, bytes.Repeat([]byte{255}, 8)) },
		"own length":     func(b []byte) bool { return len(b) == 16 && b[0] == 16 },
		"another's part": func(b []byte) bool { return bytes.Contains(b, []byte("\x00789ab")) },
	}
	for range 200_000 {
		b := m.next()
		for name, reached := range want {
			if reached(b) {
				delete(want, name)
			}
		}
	}
	require.Empty(t, want)
}

func TestCorpusFormat(t *testing.T) {
	for _, data := range []string{"", "text", "\x00\xff\n\"\\`é"} {
		got, err := decode(encode([]byte(data)))
		require.NoError(t, err)
		require.Equal(t, data, string(got))
	}
	for _, text := range []string{"", corpusVersion + "\nstring(\"x\")\n", corpusVersion + "\n[]byte(\"x\")\nint(1)\n"} {
		_, err := decode(text)
		require.Error(t, err, text)
	}
}
