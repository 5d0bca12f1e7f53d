// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// ours are the licenses of this repository and of what it has of others, from its root.
var ours = []string{"LICENSE", "internal/bpf/LICENSE", "internal/bpf/LICENSE.GPL-2.0", "cmd/labelprof/web/dist/LICENSES.txt"}

// licenseFile is a name of a file with terms, not of one with code about them.
var licenseFile = regexp.MustCompile(`(?i)^(un)?(licen[cs]es?|notice|copying|copyright|patents)([-_.](txt|md|[a-z0-9-]+))?$`)

var sourceFile = regexp.MustCompile(`\.(go|ya?ml|json|tmpl|sh|py|js)$`)

// writeLicenses writes the terms of all modules that static programs were built from, and of
// ours. Each text is there once, below the files that have it.
func writeLicenses(w io.Writer, programs []string) error {
	out, err := exec.Command("go", "env", "GOROOT", "GOMODCACHE").Output()
	if err != nil {
		return fmt.Errorf("ask go for its folders: %w", err)
	}
	folders := strings.Fields(string(out))
	if len(folders) != 2 {
		return fmt.Errorf("go's folders are %q", out)
	}
	files := map[string][]string{} // by text
	add := func(name, path string) error {
		text, err := os.ReadFile(path) //nolint:gosec // of a module, or ours
		files[string(text)] = append(files[string(text)], name)
		return err
	}
	for _, path := range ours {
		if err := add(path, path); err != nil {
			return err
		}
	}
	if err := add("std/LICENSE", filepath.Join(folders[0], "LICENSE")); err != nil {
		return err
	}
	modules := map[string]bool{}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return fmt.Errorf("read what %s was built from: %w", program, err)
		}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			if m.Version != "(devel)" { // by a folder: the checkout
				modules[m.Path+"@"+m.Version] = true
			}
		}
	}
	for _, module := range slices.Sorted(maps.Keys(modules)) {
		root := filepath.Join(folders[1], escaped(module))
		found := false
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return fs.SkipDir
			case d.IsDir() || !licenseFile.MatchString(d.Name()) || sourceFile.MatchString(d.Name()):
				return nil
			}
			found = true
			return add(module+strings.TrimPrefix(path, root), path)
		})
		if err != nil {
			return fmt.Errorf("look for the license of %s: %w", module, err)
		}
		if !found {
			return fmt.Errorf("%s has no license", module)
		}
	}
	// In the order of the first file of each: ours and Go's, then by module.
	texts := slices.SortedFunc(maps.Keys(files), func(a, b string) int { return strings.Compare(rank(files[a][0]), rank(files[b][0])) })
	for _, text := range texts {
		if _, err := fmt.Fprintf(w, "%s\n%s\n\n%s\n\n", strings.Repeat("=", 80), strings.Join(files[text], "\n"), strings.TrimRight(text, " \r\n")); err != nil {
			return fmt.Errorf("write the licenses: %w", err)
		}
	}
	return nil
}

// rank sorts what is not of a module first.
func rank(name string) string {
	if strings.Contains(name, "@") {
		return "1" + name
	}
	return "0" + name
}

// escaped is how the cache of modules spells one: capital letters after a !.
func escaped(module string) string {
	var b strings.Builder
	for _, r := range module {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('!')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
