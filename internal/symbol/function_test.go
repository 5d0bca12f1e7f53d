package symbol

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A name that would take the demangler for ever stays as it is.
func TestNameWithoutEnd(t *testing.T) {
	name := "_ZcvT_I" + strings.Repeat("LZcvT_I", 100) + "Li0E" + strings.Repeat("EE", 100) + "E"
	done := make(chan string, 1)
	go func() { done <- demangled(name) }()
	select {
	case got := <-done:
		require.Equal(t, name, got)
	case <-time.After(10 * time.Second):
		t.Fatal("it takes too long")
	}
	require.Equal(t, "C::operator int()", demangled("_ZN1CcviEv"))
	require.Equal(t, "f(cv::A, cv::B, cv::C, cv::D)", demangled("_Z1fN2cv1AEN2cv1BEN2cv1CEN2cv1DE"), "a namespace")
}
