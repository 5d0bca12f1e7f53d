//go:build linux

package executable

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/target"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
	"github.com/customlabels/otelcol-customlabels/test/bench/paired"
)

const (
	// planGoal is the time in ms in which an executable is to be read, once it is in the page
	// cache.
	planGoal = 2
	// planBytes bounds what is read of a file besides .symtab, however large it
	// is: head and tail for its hash, program headers, notes, dynamic section,
	// one chain of each hash table, a few names, and the relocations of what
	// defines labels. .symtab is read as a whole, if there is one, because it
	// alone has the variables that a file does not export.
	planBytes = 64 << 10
	// largeDataBytes and largeSymbols are the size of the file that is linked.
	largeDataBytes = 400 << 20
	largeSymbols   = 300_000
)

// planFile is a file to be read, and how.
type planFile struct {
	name, path string
	model      string // how it reaches its labels; "" if it has none
	maxBytes   int64

	file  *os.File
	size  int64
	cold  []float64 // ms by round, where the page cache held nothing of it
	bytes int64
	reads int
}

// counting counts what is read of a file.
type counting struct {
	r     io.ReaderAt
	bytes int64
	reads int
}

func (c *counting) ReadAt(p []byte, off int64) (int, error) {
	c.bytes += int64(len(p))
	c.reads++
	return c.r.ReadAt(p, off)
}

// TestBenchPlan measures what it takes to read all that is kept of one file: cold, with
// nothing of it in the page cache, and warm. In each round the files come one after the
// other, in random order. How much is read of a file is bounded, whatever the time.
func TestBenchPlan(t *testing.T) {
	if testing.Short() {
		t.Skip("a measurement: run by `make bench-resolve`")
	}
	const warm = "warm ms"
	run := paired.Start(t, "../../build/bench", "plan")
	files := planFiles(t)
	byName := map[string]*planFile{}
	var names []string
	for _, f := range files {
		byName[f.name] = f
		names = append(names, f.name)
	}
	series := run.Rounds("reading one executable", testutil.Size(21, 1, 1), names, func(name string) paired.Figures {
		return paired.Figures{warm: byName[name].round(t)}
	})
	fmt.Printf("Reading one executable; cold: page cache emptied of it, warm: in the page cache\n")
	fmt.Printf("%-44s %8s %-16s %9s %9s %10s %6s\n", "", "MiB", "labels by", "cold ms", warm, "bytes", "reads")
	var claims []paired.Claim
	for _, f := range files {
		model, cold := f.model, "not cold"
		if model == "" {
			model = "none"
		}
		if len(f.cold) > 0 {
			cold = fmt.Sprintf("%.2f", paired.Of(f.cold).Median)
		}
		times := series.Values(f.name, warm)
		fmt.Printf("%-44s %8.1f %-16s %9s %9.3f %10d %6d\n", f.name, float64(f.size)/(1<<20), model, cold, paired.Of(times).Median, f.bytes, f.reads)
		require.LessOrEqual(t, f.bytes, f.maxBytes, f.name)
		claims = append(claims, paired.Claim{What: f.name, Unit: "ms", Values: times, Goal: planGoal})
	}
	run.Judge(claims...)
}

// round returns the time of reading it warm.
func (f *planFile) round(t *testing.T) (ms float64) {
	require.NoError(t, unix.Fadvise(int(f.file.Fd()), 0, 0, unix.FADV_DONTNEED))
	// What needs the disk is not read with RWF_NOWAIT.
	_, err := unix.Preadv2(int(f.file.Fd()), [][]byte{make([]byte, 1)}, 0, unix.RWF_NOWAIT)
	first := f.read(t)
	if errors.Is(err, unix.EAGAIN) {
		f.cold = append(f.cold, first)
	}
	return f.read(t)
}

func (f *planFile) read(t *testing.T) (ms float64) {
	c := counting{r: f.file}
	runtime.GC() // not in the middle of it
	start := time.Now()
	facts, err := ReadFacts(t.Context(), &c, f.size)
	taken := time.Since(start)
	require.NoError(t, err)
	require.Equal(t, f.model != "", len(facts.Plans) == 1, f.name)
	if f.model != "" {
		require.NoError(t, facts.Plans[0].Err)
		require.Equal(t, f.model, facts.Plans[0].Model)
	}
	f.bytes, f.reads = c.bytes, c.reads
	return float64(taken) / 1e6
}

// planFiles returns copies of the files, which nobody maps, so that they can
// leave the page cache.
func planFiles(t *testing.T) []*planFile {
	v1 := "#include <stdint.h>\n" + target.DefineV1
	exported := v1 + "void *where(void) { return &custom_labels_current_set; }\n"
	hidden := strings.ReplaceAll(exported, "default", "hidden")
	program := v1 + "int main(void) { return custom_labels_current_set != 0; }\n"
	general := tlsresolve.GeneralDynamic.String()
	many, large := manySymbols(t, largeSymbols, 0), manySymbols(t, largeSymbols, largeDataBytes)
	files := []*planFile{
		{name: "small library", path: target.Library(t, target.DefineV1, "custom_labels_current_set"), model: general},
		{name: "libc", path: libcPath(t)},
		{name: "static executable, 300,000 symbols", path: target.Compile(t, "static", program, "-static", many), model: tlsresolve.LocalExec.String()},
		{name: "large library, stripped", path: target.Compile(t, "stripped.so", exported, "-shared", "-fPIC", "-s", large), model: general},
		{name: "large library, exported, 300,000 symbols", path: target.Compile(t, "large.so", exported, "-shared", "-fPIC", large), model: general},
		{name: "large library, hidden, 300,000 symbols", path: target.Compile(t, "hidden.so", hidden, "-shared", "-fPIC", large), model: general},
	}
	if node, err := exec.LookPath("node"); err == nil {
		files = append(files, &planFile{name: "node", path: node})
	}
	if path := largestInstalled(t); path != "" {
		files = append(files, &planFile{name: "largest installed: " + filepath.Base(path), path: path})
	}
	for _, f := range files {
		f.maxBytes = planBytes + symtabBytes(t, f.path)
		f.openCopy(t)
	}
	return files
}

func (f *planFile) openCopy(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "copy")
	out, err := exec.Command("cp", "--reflink=never", "--sparse=never", "--", f.path, copied).CombinedOutput()
	require.NoError(t, err, "%s", out)
	f.file, err = os.Open(copied)
	require.NoError(t, err)
	t.Cleanup(func() { f.file.Close() })
	require.NoError(t, f.file.Sync()) // only clean pages leave the page cache
	info, err := f.file.Stat()
	require.NoError(t, err)
	f.size = info.Size()
}
