package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// mutantDir has the package that says which mutation is chosen. Only the overlay has it.
const mutantDir = "internal/mutant"

// mutantPackage is its source. The places of mutations that are reached are noted, each
// once: all of them if none is chosen, so that it is known which tests can notice which
// mutation. It does so without an allocation where it has been before: there are tests
// that count those.
const mutantPackage = `// Package mutant says which mutation is chosen.
package mutant

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
)

// Number of the mutation that is chosen, 0 for none.
var Number = parse(os.Getenv("` + mutantVariable + `"))

func parse(text string) uint32 {
	n, _ := strconv.ParseUint(text, 10, 32)
	return uint32(n)
}

// On reports whether the mutation of that number is chosen.
func On(number uint32) bool {
	if Number == 0 || Number == number {
		note(number)
	}
	return Number == number
}

// Numbers that were noted, more places than there are mutations.
var noted [1 << 14]atomic.Uint32

func note(number uint32) {
	for i := number; ; i++ {
		place := &noted[i%uint32(len(noted))]
		if place.Load() == 0 && place.CompareAndSwap(0, number) {
			break
		}
		if place.Load() == number {
			return
		}
	}
	f, err := os.OpenFile(os.Getenv("` + reachedVariable + `"), os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		fmt.Fprintln(f, number)
		f.Close()
	}
}
`

// rewriteGo returns a Go file with its mutations compiled in.
func (p *goPackage) rewriteGo(file *goFile, mutations []*mutation) (string, error) {
	var edits []*edit
	var errs []error
	for _, m := range mutations {
		e, err := p.edit(file, m)
		edits, errs = append(edits, e), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	text, err := apply(file.source, span{0, len(file.source)}, edits)
	if err != nil {
		return "", err
	}
	// On the line of the package clause, so that lines keep their numbers where they can.
	end := p.span(file.tree.Name).end
	return text[:end] + "; import " + strconv.Quote(p.module+"/"+mutantDir) + text[end:], nil
}

// edit finds the place of a mutation.
func (p *goPackage) edit(file *goFile, m *mutation) (*edit, error) {
	within := span{0, len(file.source)}
	if m.function != "" {
		decl := file.function(m.function)
		if decl == nil {
			return nil, fmt.Errorf("%v: %s has no function %s", m, m.file, m.function)
		}
		within = p.span(decl)
	}
	where, err := m.locate(file.source, within)
	if err != nil {
		return nil, err
	}
	choice, err := p.choice(file, m, where)
	return &edit{m, where, choice}, err
}

// choice finds out what the text is and returns how to choose between it and the new one.
func (p *goPackage) choice(file *goFile, m *mutation, where span) (func(string) string, error) {
	var expr ast.Expr
	statements := false
	ast.Inspect(file.tree, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		switch n := n.(type) {
		case *ast.BlockStmt:
			statements = statements || p.areStatements(n.List, where)
		case *ast.CaseClause:
			statements = statements || p.areStatements(n.Body, where)
		case *ast.CommClause:
			statements = statements || p.areStatements(n.Body, where)
		case ast.Expr:
			if expr == nil && p.span(n) == where {
				expr = n
			}
		}
		return true
	})
	switch {
	case statements:
		return m.statementChoice(), nil
	case expr == nil:
		return nil, fmt.Errorf("%v: the old text is neither an expression nor whole statements", m)
	}
	typ := p.info.TypeOf(expr)
	if typ == nil {
		return nil, fmt.Errorf("%v: the old text has no type", m)
	}
	if basic, ok := typ.(*types.Basic); ok && basic.Info()&types.IsBoolean != 0 {
		return func(old string) string {
			return fmt.Sprintf("(mutant.On(%d) && (%s) || !mutant.On(%[1]d) && (%[3]s))", m.number, m.new, old)
		}, nil
	}
	name := types.TypeString(types.Default(typ), file.qualify)
	return func(old string) string {
		return fmt.Sprintf("func() %s { if mutant.On(%d) { return %s }; return %s }()", name, m.number, m.new, old)
	}, nil
}

// statementChoice leaves the old statements in their block where it can, so that what
// they declare is there for those that follow.
func (m *mutation) statementChoice() func(string) string {
	last := m.new[strings.LastIndexByte(m.new, '\n')+1:]
	for _, leaves := range []string{"return", "continue", "break", "panic("} {
		if strings.HasPrefix(last, leaves) {
			return func(old string) string {
				return fmt.Sprintf("if mutant.On(%d) {\n%s\n}\n%s", m.number, m.new, old)
			}
		}
	}
	return func(old string) string {
		if m.new == "" {
			return fmt.Sprintf("if !mutant.On(%d) {\n%s\n}", m.number, old)
		}
		return fmt.Sprintf("if mutant.On(%d) {\n%s\n} else {\n%s\n}", m.number, m.new, old)
	}
}

func (p *goPackage) areStatements(list []ast.Stmt, where span) bool {
	for i, first := range list {
		if p.span(first).start != where.start {
			continue
		}
		for _, last := range list[i:] {
			if p.span(last).end == where.end {
				return true
			}
		}
	}
	return false
}

func (p *goPackage) span(n ast.Node) span {
	offset := func(pos token.Pos) int { return p.files.PositionFor(pos, false).Offset }
	return span{offset(n.Pos()), offset(n.End())}
}
