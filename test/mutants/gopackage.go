package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// A goPackage is the sources of one package with the types of their expressions.
type goPackage struct {
	module string
	files  *token.FileSet
	info   types.Info
	byDir  map[string]*goFile // by path from the root of the repository
}

type goFile struct {
	source []byte
	tree   *ast.File
	of     *types.Package
}

// A listed package is what the go command knows of it.
type listed struct {
	ImportPath string
	Dir        string
	Export     string
	GoFiles    []string
}

// listPackages asks the go command for packages, and for what they import.
func listPackages(root string, dirs []string) (map[string]listed, error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}
	for _, dir := range dirs {
		args = append(args, "./"+dir)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	packages := map[string]listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the list of packages: %w", err)
		}
		packages[p.ImportPath] = p
	}
}

// loadPackage parses the package of a directory and finds the types of its expressions.
func loadPackage(root, module, dir string, all map[string]listed) (*goPackage, error) {
	p := &goPackage{
		module: module,
		files:  token.NewFileSet(),
		info:   types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}},
		byDir:  map[string]*goFile{},
	}
	var trees []*ast.File
	for _, name := range all[module+"/"+dir].GoFiles {
		path := filepath.Join(root, dir, name)
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		tree, err := parser.ParseFile(p.files, path, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		trees = append(trees, tree)
		p.byDir[dir+"/"+name] = &goFile{source: source, tree: tree}
	}
	exported := importer.ForCompiler(p.files, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(all[path].Export)
	})
	checked, err := (&types.Config{Importer: exported}).Check(dir, p.files, trees, &p.info)
	if err != nil {
		return nil, fmt.Errorf("find the types of %s: %w", dir, err)
	}
	for _, f := range p.byDir {
		f.of = checked
	}
	return p, nil
}

// function returns the declaration of Func or Type.Method.
func (f *goFile) function(name string) *ast.FuncDecl {
	for _, d := range f.tree.Decls {
		if decl, ok := d.(*ast.FuncDecl); ok && functionName(decl) == name {
			return decl
		}
	}
	return nil
}

func functionName(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return decl.Name.Name
	}
	receiver := decl.Recv.List[0].Type
	for {
		switch t := receiver.(type) {
		case *ast.StarExpr:
			receiver = t.X
		case *ast.IndexExpr:
			receiver = t.X
		case *ast.Ident:
			return t.Name + "." + decl.Name.Name
		default:
			return decl.Name.Name
		}
	}
}

// qualify returns the name by which the file knows a package.
func (f *goFile) qualify(p *types.Package) string {
	if p == f.of {
		return ""
	}
	for _, i := range f.tree.Imports {
		if path, _ := strconv.Unquote(i.Path.Value); path == p.Path() && i.Name != nil {
			return i.Name.Name
		}
	}
	return strings.TrimSuffix(p.Name(), "_test")
}
