// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// corpusVersion is the first line of the files that Go's engine writes.
const corpusVersion = "go test fuzz v1"

// found returns what Go's engine has kept of a target: in the source tree and
// in its cache.
func found(f *testing.F) [][]byte {
	dirs := []string{filepath.Join("testdata", "fuzz", f.Name())}
	if cache := os.Getenv(CorpusEnv); cache != "" {
		dirs = append(dirs, filepath.Join(cache, f.Name()))
	}
	var all [][]byte
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			data, err := decode(string(text))
			if err != nil {
				f.Fatalf("%s: %v", path, err)
			}
			all = append(all, data)
		}
	}
	return all
}

// decode undoes encode.
func decode(text string) ([]byte, error) {
	value, ok := strings.CutPrefix(text, corpusVersion+"\n[]byte(")
	value, closed := strings.CutSuffix(strings.TrimSpace(value), ")")
	if !ok || !closed {
		return nil, fmt.Errorf("not one []byte of %q", corpusVersion)
	}
	data, err := strconv.Unquote(value)
	return []byte(data), err
}

func encode(data []byte) string {
	return corpusVersion + "\n[]byte(" + strconv.Quote(string(data)) + ")\n"
}

// keep saves an input that failed.
func keep(f *testing.F, data []byte) {
	text := encode(data)
	dir := filepath.Join("testdata", "fuzz", f.Name())
	path := filepath.Join(dir, fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16])
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		f.Logf("keep an input that failed: %v", err)
	}
	f.Errorf("the input that failed is in %s", path)
}
