package unwindrows

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// minObjects is the least that the corpus must have.
const minObjects = 200

// TestUnwindRows checks all objects of the corpus.
func TestUnwindRows(t *testing.T) {
	if testing.Short() {
		t.Skip("fetches gigabytes of packages")
	}
	paths := slices.Concat(fetched(t), goPrograms(t), debugFrames(t), cross(t))
	objects, unchecked := checkAll(t, paths)
	total := Report{}
	by := map[string]*count{}
	for _, o := range objects {
		total.Add(&o.Report)
		for _, key := range []string{o.Machine.String(), source(o)} {
			c := by[key]
			if c == nil {
				c = &count{}
				by[key] = c
			}
			c.objects, c.rows, c.bytes, c.text = c.objects+1, c.rows+o.Rows, c.bytes+o.Bytes, c.text+o.TextBytes
		}
		for _, d := range o.Differences {
			t.Errorf("%s: %s", o.Path, d)
		}
	}
	printf := func(format string, args ...any) { fmt.Printf("unwind-rows: "+format+"\n", args...) }
	printf("%d objects, %d not checked (%s)", len(objects), len(paths)-len(objects), describe(unchecked))
	for _, key := range sorted(by) {
		c := by[key]
		printf("%-13s %5d objects %10d rows, %.2f bytes a row, %.0f bytes a KiB of text", key, c.objects, c.rows,
			float64(c.bytes)/float64(c.rows), float64(c.bytes)/(float64(c.text)/1024))
	}
	listed := 0
	for _, n := range total.Reasons {
		listed += n
	}
	if total.Uncompared > 0 {
		printf("%d starts of rows in functions of stripped Go programs: nothing to compare with", total.Uncompared)
	}
	printf("%d starts of rows compared, %d agree, %d differ, %d for a listed reason", total.Starts, total.Agree, total.Differ, listed)
	for _, reason := range sorted(total.Reasons) {
		printf("  %8d %s", total.Reasons[reason], reason)
	}
	slices.SortFunc(objects, func(a, b *Object) int { return cmp.Compare(b.TextBytes, a.TextBytes) })
	for _, o := range objects[:min(8, len(objects))] {
		took := again(t, o.Path)
		printf("%6.3f s for %9d rows, %4d MB of text, %3d bytes a KiB: %s", took.Seconds(), o.Rows, o.TextBytes>>20,
			uint64(o.Bytes)*1024/o.TextBytes, name(o.Path))
	}
	require.GreaterOrEqual(t, len(objects), minObjects)
	require.Zero(t, total.Differ)
	require.GreaterOrEqual(t, by[elf.EM_X86_64.String()].objects, minObjects/4)
	require.GreaterOrEqual(t, by[elf.EM_AARCH64.String()].objects, minObjects/4)
	require.Positive(t, by["debug_frame"].objects)
}

// count adds up objects of one kind.
type count struct {
	objects, rows, bytes int
	text                 uint64
}

func source(o *Object) string {
	if o.Golang {
		return "Go"
	}
	if o.Source == unwind.SourceDebugFrame {
		return "debug_frame"
	}
	return "eh_frame"
}

// fetched returns the files of all packages of corpus.txt.
func fetched(t *testing.T) []string {
	cmd := exec.Command("./fetch.sh")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	return filesUnder(t, strings.TrimSpace(string(out)))
}

func filesUnder(t *testing.T, dir string) (paths []string) {
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.Contains(path, "/work.") && !strings.HasSuffix(path, ".o") {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// goPrograms builds programs of Go, whose .debug_frame is compressed or not.
func goPrograms(t *testing.T) (paths []string) {
	for _, arch := range []string{"amd64", "arm64"} {
		for i, flags := range []string{"", "-compressdwarf=false"} {
			path := filepath.Join(t.TempDir(), fmt.Sprintf("labelprof-%s-%d", arch, i))
			cmd := exec.Command("go", "build", "-ldflags="+flags, "-o", path, "../../cmd/labelprof")
			cmd.Env = append(os.Environ(), "GOARCH="+arch, "CGO_ENABLED=0")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			paths = append(paths, path)
		}
	}
	return paths
}

// debugFrames builds libraries with .debug_frame, compressed and not.
func debugFrames(t *testing.T) (paths []string) {
	for compiler, plt := range map[string]string{"gcc": "-Wl,--no-ld-generated-unwind-info", "aarch64-linux-gnu-gcc": "-Wl,-O1"} {
		for i, compression := range []string{"none", "zlib"} {
			path := filepath.Join(t.TempDir(), fmt.Sprintf("frames-%d.so", i))
			out, err := exec.Command(compiler, "-shared", "-fPIC", "-O2", "-g", "-gz="+compression, "-nostdlib",
				"-fno-asynchronous-unwind-tables", "-fno-unwind-tables", plt,
				"-o", path, "../../internal/unwind/testdata/frames.c").CombinedOutput()
			require.NoError(t, err, "%s", out)
			paths = append(paths, path)
		}
	}
	return paths
}

// cross returns the libraries of the cross compiler.
func cross(t *testing.T) []string {
	return filesUnder(t, "/usr/aarch64-linux-gnu/lib")
}

// checkAll checks files, and says of how many there is nothing to check, by reason.
func checkAll(t *testing.T, paths []string) (objects []*Object, unchecked map[string]int) {
	unchecked = map[string]int{}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Compare(size(b), size(a)) })
	var mu sync.Mutex
	var wg sync.WaitGroup
	work := make(chan string)
	for range 2 {
		wg.Go(func() {
			for path := range work {
				o, err := Check(path)
				mu.Lock()
				switch {
				case err == nil && o.Starts > 0:
					objects = append(objects, o)
				case err == nil || errors.Is(err, unwind.ErrNone):
					unchecked["no call frame information"]++
				case errors.Is(err, elffile.ErrUnsupported) || errors.Is(err, elffile.ErrNotELF) || isFormat(err):
					unchecked["no 64-bit executable or library"]++
				default:
					t.Errorf("%s: %v", path, err)
				}
				mu.Unlock()
			}
		})
	}
	for _, path := range paths {
		work <- path
	}
	close(work)
	wg.Wait()
	return objects, unchecked
}

func isFormat(err error) bool {
	var format *elffile.FormatError
	return errors.As(err, &format) && strings.Contains(format.Msg, "number of program headers")
}

// again measures how long the table of a file takes when nothing else runs and
// the file is in memory.
func again(t *testing.T, path string) time.Duration {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	best := time.Hour
	for range 3 {
		start := time.Now()
		e, err := elffile.New(bytes.NewReader(b), int64(len(b)))
		require.NoError(t, err)
		_, err = unwind.New(e, unwind.Limits{})
		require.NoError(t, err)
		best = min(best, time.Since(start))
	}
	return best
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// name cuts a path of the corpus to what tells it: architecture and file.
func name(path string) string {
	for _, arch := range []string{"/amd64/", "/arm64/"} {
		if _, rest, ok := strings.Cut(path, arch); ok {
			return arch[1:] + rest
		}
	}
	return path
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func describe(m map[string]int) string {
	var parts []string
	for _, k := range sorted(m) {
		parts = append(parts, fmt.Sprintf("%d %s", m[k], k))
	}
	return strings.Join(parts, ", ")
}
