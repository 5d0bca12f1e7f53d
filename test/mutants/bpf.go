package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

const bpfDir = "internal/bpf"

// selectSource sets the number in the programs that are about to be loaded.
const selectSource = `package bpf

import (
	"github.com/cilium/ebpf"

	"%s"
)

func selectMutant(spec *ebpf.CollectionSpec, err error) (*ebpf.CollectionSpec, error) {
	if err != nil {
		return nil, err
	}
	return spec, spec.Variables["mutant"].Set(mutant.Number)
}
`

// putBPF compiles the BPF programs with their mutations, as go generate does.
func (o *overlay) putBPF(byFile map[string][]*mutation) error {
	work := filepath.Join(o.dir, bpfDir)
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(work, "src"), os.DirFS(filepath.Join(o.root, bpfDir, "src"))); err != nil {
		return err
	}
	for path, mutations := range byFile {
		source, err := os.ReadFile(filepath.Join(o.root, path))
		if err != nil {
			return err
		}
		text, err := rewriteBPF(source, mutations)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(o.dir, path), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(work, "mutant.h"), []byte(mutantHeader), 0o644); err != nil {
		return err
	}
	generate, err := os.ReadFile(filepath.Join(o.root, bpfDir, "generate.go"))
	if err != nil {
		return err
	}
	commands := regexp.MustCompile(`(?m)^//go:generate bpf2go (.*)$`).FindAllSubmatch(generate, -1)
	for _, command := range commands {
		if err := o.compileBPF(work, string(command[1])); err != nil {
			return err
		}
	}
	if err := o.put(bpfDir+"/select_mutant.go", fmt.Sprintf(selectSource, o.module+"/"+mutantDir)); err != nil {
		return err
	}
	return o.putGenerated(work)
}

// compileBPF runs one command of go generate, for this machine only. What a mutation
// leaves unused is no error.
func (o *overlay) compileBPF(work, arguments string) error {
	before, flags, _ := strings.Cut(arguments, " -- ")
	args := strings.Fields(before)
	for i, arg := range args {
		if arg == "-target" {
			args[i+1] = runtime.GOARCH
		}
	}
	args = append(args, "--")
	args = append(args, strings.Fields(strings.ReplaceAll(flags, "-Werror", "-Wno-error"))...)
	args = append(args, "-include", filepath.Join(work, "mutant.h"))
	cmd := exec.Command(filepath.Join(o.root, "bin", "bpf2go"), args...)
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile the BPF programs with their mutations: %w\n%s", err, out)
	}
	return nil
}

// putGenerated puts the objects and what loads them into the overlay.
func (o *overlay) putGenerated(work string) error {
	sources, err := filepath.Glob(filepath.Join(work, "*_bpfel.go"))
	if err != nil {
		return err
	}
	for _, path := range sources {
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		const loaded = "return spec, err"
		if bytes.Count(source, []byte(loaded)) != 1 {
			return fmt.Errorf("%s does not load its object as bpf2go used to", path)
		}
		name := filepath.Base(path)
		if err := o.put(bpfDir+"/"+name, strings.Replace(string(source), loaded, "return selectMutant(spec, err)", 1)); err != nil {
			return err
		}
		object := strings.TrimSuffix(name, ".go") + ".o"
		o.replace[filepath.Join(o.root, bpfDir, object)] = filepath.Join(work, object)
	}
	return nil
}
