//go:build linux

package process

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

func TestConforms(t *testing.T) {
	v0, v1 := regexp.MustCompile(`libcustomlabels.*\.so`), regexp.MustCompile(`libcustomlabels.*\.so$|customlabels\.node$`)
	for _, name := range []string{
		"libcustomlabels.so", "libcustomlabels.so.1", "libcustomlabels-2.so", "libcustomlabels", "libcustomlabels.a",
		"customlabels.node", "xcustomlabels.node", "customlabels.node.bak", "libjavaProfiler123.so", "libcustomlabels.so.so",
		"notlibcustomlabels.so", "libcustomlabels.node", "libcustomlabels.soup", ".so", "", "so.libcustomlabels",
	} {
		require.Equal(t, v0.MatchString(name), conforms(record.ABIV0, "/usr/lib/"+name), name)
		require.Equal(t, v1.MatchString(name), conforms(record.ABIV1, "/usr/lib/"+name), name)
		require.True(t, conforms(record.ABIThreadContext, name))
	}
	require.False(t, conforms(record.ABIV1, "/opt/libcustomlabels.so/other.so"), "the directory does not count")
}

// Only where it is asked for, the name of a library decides.
func TestStrictFileNames(t *testing.T) {
	lib := libraryOf(t, defineV1, record.ABIV1.Symbol())
	require.False(t, conforms(record.ABIV1, lib))
	path := compile(t, "p", common+`
void *where(void);
int main(void) { say(where()); await(); return 0; }`, lib)
	p := start(t, path)
	var tp, variable uint64
	p.line(&tp, &variable)
	for _, strict := range []bool{false, true} {
		r := newRecorder()
		table := runTable(t, Options{Publisher: r, RescanInterval: quiet, StrictFileNames: strict})
		ev := p.exists()
		table.HandleEvent(ev)
		want := SourceActive
		if strict {
			want = SourceFileName
		}
		eventually(t, "state of the source", func() bool {
			proc, ok := table.Process(1)
			return ok && len(proc.Info().Sources) == 1 && proc.Info().Sources[0].State == want
		})
		sources, _ := r.of(ev.Process)
		require.Equal(t, strict, len(sources) == 0)
	}
}
