package langruntime

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What names each of the runtimes, wherever one is named.
var (
	python  = regexp.MustCompile(`(?i)cpython|python`)
	hotSpot = regexp.MustCompile(`(?i)hotspot`)
	v8      = regexp.MustCompile(`(?i)v8`)
)

// ofItsOwn are the files that one runtime has for itself. What is generated is left out, and tests.
var ofItsOwn = regexp.MustCompile(`/(cpython|hotspot|v8js)/|/(python|hotspot|v8)\w*\.bpf\.h$|_bpfel\.go$|_test\.go$|/generated_`)

// chooses tells code that does something else for each of the runtimes.
var chooses = regexp.MustCompile(`Runtime(CPython|HotSpot|V8)\b|RUNTIME_(CPYTHON|HOTSPOT|V8)\b|\b(python|hotspot|v8)_(process|walk)\b|internal/(cpython|hotspot|v8js)"|c\.Runtimes\.`)

// The package's documentation lists the files that a new runtime touches: each has all that there are,
// and no other file has any.
func TestListOfWhatARuntimeTouches(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, list, ok := strings.Cut(string(text), "# What a new runtime touches")
	require.True(t, ok)
	listed := regexp.MustCompile(`(internal|receiver|docs)/[\w/]+(\.\w+)+|\.golangci\.yml`).FindAllString(list, -1)
	require.Len(t, listed, 11)
	for _, path := range listed {
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		for _, runtime := range []*regexp.Regexp{python, hotSpot, v8} {
			require.Regexp(t, runtime, string(text), path)
		}
	}
	for _, dir := range []string{"internal", "receiver"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || ofItsOwn.MatchString(path) || !slices.Contains([]string{".go", ".h", ".c"}, filepath.Ext(path)) {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil || !chooses.Match(text) {
				return err
			}
			name, err := filepath.Rel(root, path)
			require.Contains(t, listed, name, "it has code for one runtime")
			return err
		}))
	}
}
