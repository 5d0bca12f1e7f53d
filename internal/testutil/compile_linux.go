// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Compile has a C compiler write a file: out is the last that its arguments, which leave -o
// out, mean. What it made before of the same sources, headers beside them and arguments is
// taken from build/compiled; out is always a file of its own.
func Compile(tb testing.TB, out, compiler string, args ...string) {
	tb.Helper()
	kept := keptAt(out, compiler, args)
	if kept != "" && copyFile(out, kept) == nil {
		return
	}
	command := append([]string{"-o", out}, args...)
	if text, err := exec.Command(compiler, command...).CombinedOutput(); err != nil {
		tb.Fatalf("%s %v: %v\n%s", compiler, command, err, text)
	}
	if kept != "" {
		_ = keep(out, kept) // else it is compiled again
	}
}

// keptAt is where a file is kept, "" if it depends on where the test runs: on a directory
// for temporary files, as the path of a library does.
func keptAt(out, compiler string, args []string) string {
	root, err := repositoryRoot()
	if err != nil {
		return ""
	}
	h := sha256.New()
	path, err := exec.LookPath(compiler)
	if err != nil {
		return ""
	}
	fmt.Fprintln(h, filepath.Base(out), path)
	for _, installed := range []string{path, "/var/lib/dpkg/status"} { // changes with the C library
		if info, err := os.Stat(installed); err == nil {
			fmt.Fprintln(h, info.Size(), info.ModTime().UnixNano())
		}
	}
	for _, arg := range args {
		if filepath.Ext(arg) == ".c" {
			if hashSource(h, arg) != nil {
				return ""
			}
			continue
		}
		if strings.Contains(arg, os.TempDir()) {
			return ""
		}
		fmt.Fprintln(h, arg)
		if _, script, found := strings.Cut(arg, "="); found { // for the linker
			if text, err := os.ReadFile(script); err == nil {
				_, _ = h.Write(text) // it cannot fail
			}
		}
	}
	return filepath.Join(root, "build", "compiled", hex.EncodeToString(h.Sum(nil)))
}

// hashSource hashes a source and the headers beside it, above it and beside those.
func hashSource(h io.Writer, path string) error {
	var headers []string
	for _, where := range []string{"*.h", "../*.h", "../*/*.h"} {
		found, err := filepath.Glob(filepath.Join(filepath.Dir(path), where))
		if err != nil {
			return err
		}
		headers = append(headers, found...)
	}
	for _, name := range append(headers, path) {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		fmt.Fprintln(h, filepath.Base(name), len(text))
		if _, err := h.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// keep copies a file to where others look for it, at once and whole.
func keep(out, kept string) error {
	if err := os.MkdirAll(filepath.Dir(kept), 0o750); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(kept), "new-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	made := filepath.Join(dir, "file")
	if err := copyFile(made, out); err != nil {
		return err
	}
	return os.Rename(made, kept)
}

// copyFile copies in another process: a program that this one has open for writing, and every
// child that is being started meanwhile, could not be run.
func copyFile(to, from string) error {
	if _, err := os.Stat(from); err != nil {
		return err
	}
	return exec.Command("cp", from, to).Run()
}
