package symbol

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// A function without a size does not give its name to those behind it that were stripped; with the file's
// debug file, or with its own symbols packed, both have theirs.
func TestUnsizedStripped(t *testing.T) {
	dir := t.TempDir()
	source, whole, debug := filepath.Join(dir, "l.s"), filepath.Join(dir, "l.so"), filepath.Join(dir, "l.debug")
	require.NoError(t, os.WriteFile(source, []byte(`.text
.globl visible
.type visible,%function
visible: .skip 16
.type behind,%function
behind: .skip 16
.section .note.GNU-stack,"",%progbits
`), 0o644))
	testutil.Compile(t, whole, "gcc", "-shared", "-nostdlib", "-Wl,--build-id=none", source)
	tool(t, "objcopy", "--only-keep-debug", whole, debug)
	stripped := filepath.Join(dir, "p.so")
	tool(t, "strip", "-o", stripped, whole)
	packed := &split{root: dir, path: "/packed.so"}
	tool(t, "cp", stripped, dir+packed.path)
	symbols, err := os.ReadFile(debug)
	require.NoError(t, err)
	packed.withDebugData(t, pack(t, symbols))
	at := vaddrOf(t, whole, "visible")
	for path, want := range map[string][3]string{
		whole: {"visible", "visible", "behind"}, dir + packed.path: {"visible", "visible", "behind"}, stripped: {"visible"},
	} {
		c := NewCache[int](CacheOptions{Wait: time.Minute})
		for i, add := range []uint64{0, 8, 24} {
			fn, _ := lookup(c, 1, &opener{path: path}, at+add)
			require.Equal(t, want[i], fn.Name, "%s at %d", path, add)
		}
	}
}
