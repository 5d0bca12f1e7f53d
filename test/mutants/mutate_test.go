package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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

import (
	"testing"
	"time"
)

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

func TestSlow(t *testing.T) {
	time.Sleep(300 * time.Millisecond)
	var c counter
	c.add(1)
	if c.n != 1 {
		t.Error(c.n)
	}
}
`
)

// newProduct makes the package and mutations of it.
func newProduct(t *testing.T, data string) options {
	t.Helper()
	o := options{
		root: t.TempDir(), module: "product.test", work: t.TempDir(), data: t.TempDir(),
		files: regexp.MustCompile(""), run: regexp.MustCompile(""), deadline: time.Minute, parallel: 2,
	}
	for path, text := range map[string]string{
		filepath.Join(o.root, "go.mod"):              "module product.test\n\ngo 1.26\n",
		filepath.Join(o.root, "sum/product.go"):      productSource,
		filepath.Join(o.root, "sum/product_test.go"): productTest,
		filepath.Join(o.data, "sum.txt"):             data,
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return o
}

// mutateProduct runs the command on that package.
func mutateProduct(t *testing.T, data string, change ...func(*options)) (string, error) {
	t.Helper()
	o := newProduct(t, data)
	for _, c := range change {
		c(&o)
	}
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
`)
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
`)
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
`, func(o *options) { o.deadline = 8 * time.Second })
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

// A mutation is tried on the tests that reach it, quick ones first, and on others only if
// none of those notices it: all of a package when no tests are named, but those that skip.
func TestOrder(t *testing.T) {
	out, err := mutateProduct(t, `file: sum/product.go
tests: sum

mutation: a quick test and a slow one notice it
- c.n += uint8(n)
+ c.n += 2 * uint8(n)

mutation: no test that reaches it notices it
- sum += v
+ sum += max(v, 1)

mutation: the slow test does not reach it
- v < 0
+ v < 0 || v == 200
accepted: no test has this number
`, func(o *options) { o.verbose = true })
	require.ErrorContains(t, err, "1 of 3")
	require.Contains(t, out, "1 test programs built in ")
	require.Contains(t, out, "4 tests without a mutation: ")
	of := map[string][]string{}
	name := ""
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if test, ok := strings.CutPrefix(line, "=== RUN   "); ok {
			if !strings.Contains(test, "/") {
				of[name] = append(of[name], test)
			}
		} else if !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "---") && line != "PASS" && line != "FAIL" {
			name = line
		}
	}
	require.Len(t, of["a quick test and a slow one notice it"], 1)
	require.Subset(t, []string{"TestCounter", "TestSlow"}, of["a quick test and a slow one notice it"])
	require.ElementsMatch(t, []string{"TestSum", "TestCounter", "TestSlow", "TestSkipped"}, of["no test that reaches it notices it"])
	require.Equal(t, "TestSum", of["no test that reaches it notices it"][0])
	require.Equal(t, []string{"TestSum"}, of["the slow test does not reach it"])
}

// Of the tests that run the place of a mutation, the quickest comes first, and then the others.
func TestQuickestFirst(t *testing.T) {
	slow, quick, other := testRun{name: "TestSlow"}, testRun{name: "TestQuick"}, testRun{name: "TestOther"}
	p := &programs{baseline: map[testRun]*outcome{
		slow:  {took: time.Minute, reached: []uint32{1}},
		quick: {took: time.Second, reached: []uint32{1}},
		other: {took: time.Millisecond},
	}}
	m := &mutation{number: 1, tests: []testRun{other, slow, quick}}
	require.Equal(t, []testRun{quick, slow, other}, p.inOrder(m))
	m.accepted = "a reason"
	require.Equal(t, []testRun{quick, slow}, p.inOrder(m))
}

// A test that takes long without a mutation, too, does not hang: it gets more time.
func TestBusyMachine(t *testing.T) {
	o := newProduct(t, "file: sum/product.go\ntests: sum TestSlow\n\nmutation: none\n- sum += v\naccepted: not reached\n")
	require.NoError(t, o.mutate(t.Context(), io.Discard))
	slow := testRun{dir: "sum", name: "TestSlow"}
	p := &programs{root: o.root, dir: filepath.Join(o.work, "tests"), baseline: map[testRun]*outcome{slow: {took: time.Millisecond}}}
	ran, err := p.try(t.Context(), slow, 1, 250*time.Millisecond)
	require.NoError(t, err)
	require.True(t, ran.passed, "%+v", ran)
	require.False(t, ran.hung)
}

// What should not be fails: a survivor without a reason, and a reason that does not hold.
func TestUnexpected(t *testing.T) {
	out, err := mutateProduct(t, defaults+`
mutation: noticed
- sum += v
+ sum -= v
accepted: there is a test
`)
	require.ErrorContains(t, err, "1 of 1")
	require.Contains(t, out, `"noticed": the reason to accept it does not hold: TestSum notices it`)

	_, err = mutateProduct(t, defaults+`
mutation: noticed at times
- sum += v
+ sum -= v
unsure: it hangs on what else runs
`)
	require.NoError(t, err)

	out, err = mutateProduct(t, defaults+`
mutation: not noticed
- v < 0
+ v < 0 || v == 100

mutation: not reached
in: unused
- n / 2
+ 1
`)
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
			out, err := mutateProduct(t, defaults+c.data[1:])
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
