package record

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRuntimesEqualTheHeader(t *testing.T) {
	want := enumerators(t, "RUNTIME_")
	require.Equal(t, NumRuntimes, want["max"])
	require.Equal(t, int(RuntimeCPython), want["cpython"])
	require.Equal(t, "cpython", RuntimeCPython.String())
	require.Equal(t, int(RuntimeHotSpot), want["hotspot"])
	require.Equal(t, "jvm", RuntimeHotSpot.String())
	require.Equal(t, int(RuntimeV8), want["v8"])
	require.Equal(t, "v8js", RuntimeV8.String())
	require.Equal(t, "unknown", RuntimeKind(NumRuntimes).String())
	for kind := range RuntimeKind(NumRuntimes) {
		require.NotEmpty(t, kind.String())
	}
}

func TestRuntimeWord(t *testing.T) {
	w, ok := RuntimeWordOf(uint64(NewRuntimeWord(RuntimeCPython, 0xfedcba98, 0x123456)))
	require.True(t, ok)
	require.Equal(t, RuntimeCPython, w.Kind())
	require.EqualValues(t, 0xfedcba98, w.Cookie())
	require.EqualValues(t, 0x123456, w.Position())
	for _, addr := range []uint64{0, 0x7fffffffffff, 1<<56 - 1, 0xffffffffff600000, 0xffff800000000000, 1 << 63} {
		_, ok := RuntimeWordOf(addr)
		require.False(t, ok, "%#x", addr)
	}
}
