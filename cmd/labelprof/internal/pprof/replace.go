// SPDX-License-Identifier: Apache-2.0

package pprof

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// writeFile writes to what has the name and is no regular file, or else replaces it.
func writeFile(name string, write func(io.Writer) error) error {
	if !isSpecial(name) {
		return replaceFile(name, write)
	}
	// Appended, nothing is lost where the name leads to a file after all: standard output, say.
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if err := write(file); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

// CheckFile fails where Builder.WriteFile could not write a file of this name: a command that
// gathers for hours shall not learn that at its end. What is in the file stays.
func CheckFile(name string) error {
	if isSpecial(name) {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			return fmt.Errorf("write %s: %w", name, syscall.EISDIR)
		}
		return nil // to open a pipe could wait for its reader
	}
	file, err := createBeside(name)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// isSpecial reports whether a name is that of a device, a pipe and the like, or one that the
// system has for what is open, such as /dev/stdout. A file of that name would take the place of
// what others write to.
func isSpecial(name string) bool {
	info, err := os.Stat(name)
	if err != nil {
		return false
	}
	dir, _ := filepath.EvalSymlinks(filepath.Dir(name)) // /dev/fd is in /proc
	return !info.Mode().IsRegular() || dir == "/dev" || strings.HasPrefix(dir, "/proc/")
}

// replaceFile writes a file under another name first: a reader finds all or nothing. Only
// its owner may read it, whatever the one before was: labels may be secrets.
func replaceFile(name string, write func(io.Writer) error) (err error) {
	file, err := createBeside(name)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			file.Close()
			_ = os.Remove(file.Name()) // the error that led here says more
		}
	}()
	if err := write(file); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}

// createBeside creates a file that can take the place of another.
func createBeside(name string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.part")
}
