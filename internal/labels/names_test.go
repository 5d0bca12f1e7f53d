package labels

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrometheusName(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "tenant": "tenant", "http.route": "http.route", "Trace_2": "Trace_2", "_a": "_a", ".a": ".a", "_": "_",
		"span id": "span_id", "output-level": "output_level", "a/b\\c\x00": "a_b_c_", "é": "_", "日本": "_", "a日b": "a_b",
		"2xx": "_2xx", "_2xx": "_2xx", "__name__": "_name__", "..a": "_a", "-.a": "_a", "__": "_", "a..b": "a..b", `\xff`: "_xff",
	} {
		require.Equal(t, want, PrometheusName(name), "%q", name)
	}
	require.Equal(t, "a_b_c", Undotted("a.b_c"))
}

// Whatever a name is, such backends take what is made of it, and make nothing else of that.
func FuzzPrometheusName(f *testing.F) {
	for _, name := range []string{"", "a.b", "span id", "__name__", "\xff", "9", "._9"} {
		f.Add(name)
	}
	valid := regexp.MustCompile(`^([a-zA-Z]|_[a-zA-Z0-9]|_$)[a-zA-Z0-9_]*$`) // of Prometheus, and not its own
	f.Fuzz(func(t *testing.T, name string) {
		got := PrometheusName(name)
		require.Equal(t, name == "", got == "")
		require.Equal(t, got, PrometheusName(got))
		if name != "" {
			require.Regexp(t, valid, Undotted(got))
		}
	})
}
