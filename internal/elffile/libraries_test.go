package elffile_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
)

func TestLibraries(t *testing.T) {
	dir := testutil.BuildWriters(t)
	soname, needed, err := open(t, filepath.Join(dir, "writer-v1-lib")).Libraries()
	require.NoError(t, err)
	require.Empty(t, soname)
	require.Contains(t, needed, "libcustomlabels_v1.so")
	require.Contains(t, needed, "libc.so.6")

	soname, _, err = open(t, filepath.Join(dir, "libcustomlabels_v1.so")).Libraries()
	require.NoError(t, err)
	require.Equal(t, "libcustomlabels_v1.so", soname)

	static := corpus.Build(t, "host", corpus.GCC, "host.c", "variable.c", "-DLINKED", "-pthread", "-static")
	soname, needed, err = open(t, static).Libraries()
	require.NoError(t, err)
	require.Empty(t, soname)
	require.Empty(t, needed)
}
