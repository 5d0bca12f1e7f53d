package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// An overlay is files that the go command takes instead of those of the tree, or besides.
type overlay struct {
	root, module string
	dir          string
	replace      map[string]string
}

// put adds a file of that path from the root.
func (o *overlay) put(path, text string) error {
	copied := filepath.Join(o.dir, path)
	if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
		return err
	}
	o.replace[filepath.Join(o.root, path)] = copied
	return os.WriteFile(copied, []byte(text), 0o644)
}

// write makes the file for the go command's option and returns its path.
func (o *overlay) write() (string, error) {
	text, err := json.Marshal(map[string]any{"Replace": o.replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(o.dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o644)
}

// putMutations rewrites all files that have some.
func (o *overlay) putMutations(all []*mutation) error {
	inGo := map[string]map[string][]*mutation{} // by directory and file
	inBPF := map[string][]*mutation{}
	for _, m := range all {
		if m.isBPF() {
			inBPF[m.file] = append(inBPF[m.file], m)
			continue
		}
		if inGo[m.group()] == nil {
			inGo[m.group()] = map[string][]*mutation{}
		}
		inGo[m.group()][m.file] = append(inGo[m.group()][m.file], m)
	}
	if err := o.put(mutantDir+"/mutant.go", mutantPackage); err != nil {
		return err
	}
	if err := o.putGo(inGo); err != nil {
		return err
	}
	if len(inBPF) == 0 {
		return nil
	}
	return o.putBPF(inBPF)
}

func (o *overlay) putGo(byDir map[string]map[string][]*mutation) error {
	if len(byDir) == 0 {
		return nil
	}
	dirs := slices.Sorted(maps.Keys(byDir))
	packages, err := listPackages(o.root, dirs)
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		p, err := loadPackage(o.root, o.module, dir, packages)
		if err != nil {
			return err
		}
		for path, mutations := range byDir[dir] {
			errs = append(errs, o.putFile(p, path, mutations))
		}
	}
	return errors.Join(errs...)
}

func (o *overlay) putFile(p *goPackage, path string, mutations []*mutation) error {
	file := p.byDir[path]
	if file == nil {
		return fmt.Errorf("%v: %s is not built here", mutations[0], path)
	}
	text, err := p.rewriteGo(file, mutations)
	if err != nil {
		return err
	}
	return o.put(path, text)
}
