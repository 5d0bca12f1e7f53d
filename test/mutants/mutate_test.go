package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A package with a test that notices some changes.
const (
	productSource = `package product

import "errors"

// Sum adds what is below a limit.
func Sum(values []int, limit int) (sum int, err error) {
	for _, v := range values {
		if v < 0 {
			return 0, errors.New("negative")
		}
		if v >= limit {
			continue
		}
		sum += v
	}
	return sum, nil
}

type counter struct{ n uint8 }

func (c *counter) add(n int) { c.n += uint8(n) }

func (c *counter) sub(n int) { c.n -= uint8(n) }

func unused(n int) int {
	half := n / 2
	return half
}
`
	productTest = `package product

import "testing"

func TestSum(t *testing.T) {
	if sum, _ := Sum([]int{1, 2, 10}, 10); sum != 3 {
		t.Errorf("%d", sum)
	}
	if _, err := Sum([]int{-1}, 10); err == nil {
		t.Fatal("no error")
	}
}

func TestCounter(t *testing.T) {
	var c counter
	c.add(3)
	c.sub(1)
	t.Run("sum", func(t *testing.T) {
		if c.n != 2 {
			t.Error(c.n)
		}
	})
}

func TestSkipped(t *testing.T) { t.Skip() }
`
)

// mutateProduct runs the command on that package.
func mutateProduct(t *testing.T, data string, o options) (string, error) {
	t.Helper()
	o.root, o.module, o.work, o.data = t.TempDir(), "product.test", t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(o.root, "go.mod"):              "module product.test\n\ngo 1.26\n",
		filepath.Join(o.root, "sum/product.go"):      productSource,
		filepath.Join(o.root, "sum/product_test.go"): productTest,
		filepath.Join(o.data, "sum.txt"):             data,
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	if o.files == nil {
		o.files = regexp.MustCompile("")
	}
	if o.run == nil {
		o.run = regexp.MustCompile("")
	}
	if o.deadline == 0 {
		o.deadline = time.Minute
	}
	o.parallel = 2
	var out bytes.Buffer
	err := o.mutate(t.Context(), &out)
	return out.String(), err
}

const defaults = "file: sum/product.go\ntests: sum TestSum TestCounter\n\n"

func TestMutate(t *testing.T) {
	out, err := mutateProduct(t, defaults+`
mutation: a condition
- v >= limit
+ v > limit

mutation: a condition in a condition
- limit
+ limit + 1
in: Sum
accepted: changed below to one that stands once
`, options{})
	require.ErrorContains(t, err, "2 times")
	require.Empty(t, out)

	out, err = mutateProduct(t, defaults+`
mutation: a condition
- v >= limit
+ v > limit

mutation: within it
- v >=
+ v >
accepted: no expression
`, options{})
	require.ErrorContains(t, err, `"within it": the old text is neither an expression nor whole statements`)
	require.Empty(t, out)

	out, err = mutateProduct(t, defaults+`
mutation: a condition
- v >= limit
+ v > limit

mutation: a statement around it
- if v >= limit {
- continue
- }

mutation: the same text in another way
- v >= limit
+ false

mutation: an expression of two values
in: Sum
- errors.New("negative")
+ nil

mutation: a method
in: counter.sub
- uint8(n)
+ 0

mutation: it ends the program
in: counter.add
- c.n += uint8(n)
+ panic("add")

mutation: it never ends
- sum += v
+ for {}

mutation: not noticed, for a reason
in: unused
- half := n / 2
+ return n
accepted: nothing calls it
`, options{deadline: 2 * time.Second})
	require.NoError(t, err)
	for _, want := range []string{
		`a condition +killed: TestSum\n`,
		`a statement around it +killed: TestSum\n`,
		`the same text in another way +killed: TestSum\n`,
		`an expression of two values +killed: TestSum\n`,
		`a method +killed: TestCounter/sum\n`,
		`it ends the program +killed: TestCounter\n`,
		`it never ends +killed: TestSum hangs\n`,
		`not noticed, for a reason +SURVIVED, accepted: nothing calls it\n`,
		`sum +8 +7 +1 +0 +\d+\n`,
	} {
		require.Regexp(t, want, out)
	}
}

// What should not be fails: a survivor without a reason, and a reason that does not hold.
func TestUnexpected(t *testing.T) {
	out, err := mutateProduct(t, defaults+`
mutation: noticed
- sum += v
+ sum -= v
accepted: there is a test
`, options{})
	require.ErrorContains(t, err, "1 of 1")
	require.Contains(t, out, `"noticed": the reason to accept it does not hold: TestSum notices it`)

	out, err = mutateProduct(t, defaults+`
mutation: not noticed
- v < 0
+ v < 0 || v == 100

mutation: not reached
in: unused
- n / 2
+ 1
`, options{})
	require.ErrorContains(t, err, "2 of 2")
	require.Regexp(t, `not noticed +SURVIVED\n`, out)
	require.Regexp(t, `not reached +SURVIVED: its tests do not reach it\n`, out)
	require.Contains(t, out, `"not noticed" (sum/product.go): no test notices it`)
}

// A text that is gone, a test that is gone or skips, and a test that fails anyway are
// told before any mutation runs.
func TestStale(t *testing.T) {
	for name, c := range map[string]struct{ data, says string }{
		"text": {`
mutation: it was there
- v == limit
+ v > limit
`, `sum.txt:4: "it was there": sum/product.go has the old text 0 times where once is right`},
		"function": {`
mutation: it was there
in: counter.mul
- v >= limit
+ v > limit
`, `"it was there": sum/product.go has no function counter.mul`},
		"file": {`
mutation: it was there
file: sum/other.go
- v >= limit
+ v > limit
`, `"it was there": sum/other.go is not built here`},
		"test": {`
mutation: its test is gone
tests: sum TestSum TestGone
- v >= limit
+ v > limit
`, `sum TestGone was not run, or skipped`},
		"skipped": {`
mutation: its test skips
tests: sum TestSkipped
- v >= limit
+ v > limit
`, `sum TestSkipped was not run, or skipped`},
		"compiler": {`
mutation: it is no Go
- sum += v
+ sum += gone
`, `undefined: gone`},
		"name": {`
mutation: twice
- sum += v
+ sum -= v

mutation: twice
- sum += v
`, `its name is also that of sum.txt:4`},
		"overlap": {`
mutation: one
- if v >= limit {
- continue
- }
- sum += v

mutation: two
- sum += v
- }
+ }
`, `neither an expression nor whole statements`},
		"nothing": {`
mutation: nothing
- sum += v
+ sum += v
`, `changes nothing`},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := mutateProduct(t, defaults+c.data[1:], options{})
			require.ErrorContains(t, err, c.says)
			require.Empty(t, out)
		})
	}
}

// A sample is spread over all, and the same each time.
func TestSample(t *testing.T) {
	o := options{files: regexp.MustCompile(`\.go$`), run: regexp.MustCompile(""), sample: 4}
	var all []*mutation
	for i := range 103 {
		all = append(all, &mutation{number: uint32(i + 1), file: "a.go"})
	}
	all = append(all, &mutation{number: 104, file: "a.c"})
	var numbers []uint32
	for _, m := range o.choose(all) {
		numbers = append(numbers, m.number)
	}
	require.Equal(t, "[1 26 52 78]", fmt.Sprint(numbers))
}

// In C, a text that ends as a statement does is one.
func TestRewriteBPF(t *testing.T) {
	source := []byte(`static __always_inline int one(int a)
{
	if (a > 1)
		return 1;
	a++;
	return a;
}

int two(struct ctx *ctx)
{
	if (a > 1)
		return 1;
	return 0;
}
`)
	statement := &mutation{number: 1, file: "a.h", function: "one", old: "a++;"}
	condition := &mutation{number: 2, file: "a.h", function: "two", old: "a > 1", new: "a >= 1"}
	text, err := rewriteBPF(source, []*mutation{condition, statement})
	require.NoError(t, err)
	require.Contains(t, text, "if (mutant == 1u) {\n\n} else {\na++;\n}")
	require.Contains(t, text, "if ((mutant == 2u ? (a >= 1) : (a > 1)))\n\t\treturn 1;\n\treturn 0;")
	condition.function = ""
	_, err = rewriteBPF(source, []*mutation{condition})
	require.ErrorContains(t, err, "2 times")
}

// The mutations of this repository have their texts: all is there that they name.
func TestData(t *testing.T) {
	root, module, err := repository()
	require.NoError(t, err)
	all, err := readMutations(filepath.Join(root, "test/mutants/data"))
	require.NoError(t, err)
	var inGo []*mutation
	for _, m := range all {
		if !m.isBPF() {
			inGo = append(inGo, m)
			continue
		}
		source, err := os.ReadFile(filepath.Join(root, m.file))
		require.NoError(t, err)
		_, err = rewriteBPF(source, []*mutation{m})
		require.NoError(t, err)
	}
	over := &overlay{root: root, module: module, dir: t.TempDir(), replace: map[string]string{}}
	require.NoError(t, over.putMutations(inGo))
}
