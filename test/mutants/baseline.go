package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// deadlineFactor is how many times as long as without a mutation a test may take, at
// least, before it is said to hang.
const deadlineFactor = 5

// expand puts the tests of a package in place of the package alone.
func (p *programs) expand(ctx context.Context, mutations []*mutation) error {
	names := map[string][]string{}
	for _, m := range mutations {
		var tests []testRun
		for _, t := range m.tests {
			if t.name != "" {
				tests = append(tests, t)
				continue
			}
			if names[t.dir] == nil {
				var err error
				if names[t.dir], err = p.list(ctx, t.dir); err != nil {
					return err
				}
			}
			for _, name := range names[t.dir] {
				tests = append(tests, testRun{t.dir, name, true})
			}
		}
		m.tests = tests
	}
	return nil
}

// runBaseline runs each of the tests without a mutation: they must be there and pass.
func (p *programs) runBaseline(ctx context.Context, mutations []*mutation, o *options) error {
	p.baseline = map[testRun]*outcome{}
	var tests []testRun
	for _, m := range mutations {
		for _, t := range m.tests {
			if _, ok := p.baseline[t]; !ok {
				p.baseline[t] = nil
				tests = append(tests, t)
			}
		}
	}
	var mu sync.Mutex
	var errs []error
	each(tests, o.parallel, func(t testRun) {
		ran, err := p.run(ctx, t, 0, 30*o.deadline)
		switch {
		case err != nil:
		case !ran.passed:
			err = fmt.Errorf("%s fails without a mutation:\n%s", t, ran.output)
		case ran.ran == 0 && !t.listed:
			err = fmt.Errorf("%s was not run, or skipped:\n%s", t, ran.output)
		}
		mu.Lock()
		defer mu.Unlock()
		p.baseline[t] = ran
		errs = append(errs, err)
	})
	return errors.Join(errs...)
}

// inOrder returns the tests of a mutation: those that run its place before the others,
// which can hardly notice it, and quick ones before slow ones. Where a survivor is
// expected, only the former.
func (p *programs) inOrder(m *mutation) []testRun {
	reach := func(t testRun) int {
		if p.baseline[t].reaches(m) {
			return 0
		}
		return 1
	}
	tests := slices.SortedStableFunc(slices.Values(m.tests), func(a, b testRun) int {
		return cmp.Or(reach(a)-reach(b), cmp.Compare(p.baseline[a].took, p.baseline[b].took))
	})
	if m.accepted != "" {
		tests = slices.DeleteFunc(tests, func(t testRun) bool { return reach(t) > 0 })
	}
	return tests
}

// try runs a test with a mutation. If it hangs, it is run without the mutation at once:
// when that takes long, too, the machine is busy, and the test gets more time.
func (p *programs) try(ctx context.Context, t testRun, number uint32, deadline time.Duration) (*outcome, error) {
	for deadline = max(deadline, deadlineFactor*p.baseline[t].took); ; deadline *= 2 {
		mutated, err := p.run(ctx, t, number, deadline)
		if err != nil || !mutated.hung {
			return mutated, err
		}
		original, err := p.run(ctx, t, 0, deadline)
		if err != nil || !original.hung && original.took < deadline/2 {
			return mutated, err
		}
	}
}

// each calls f for all values, several at a time.
func each[T any](values []T, parallel int, f func(T)) {
	var wg sync.WaitGroup
	free := make(chan struct{}, parallel)
	for _, v := range values {
		free <- struct{}{}
		wg.Go(func() {
			f(v)
			<-free
		})
	}
	wg.Wait()
}
