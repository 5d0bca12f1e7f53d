package elffile_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
)

func TestStripped(t *testing.T) {
	for _, tc := range []struct {
		flags []string
		want  bool
	}{{nil, false}, {[]string{"-s"}, true}} {
		file, err := os.Open(corpus.Library(t, corpus.GCC, tc.flags...))
		require.NoError(t, err)
		defer file.Close()
		st, err := file.Stat()
		require.NoError(t, err)
		e, err := elffile.New(file, st.Size())
		require.NoError(t, err)
		stripped, err := e.Stripped()
		require.NoError(t, err)
		require.Equal(t, tc.want, stripped)
	}
}
