package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"text/tabwriter"
	"time"
)

// mutate does all that the command is for.
func (o *options) mutate(ctx context.Context, out io.Writer) error {
	all, err := readMutations(o.data)
	if err != nil {
		return err
	}
	// All are compiled in, chosen or not: one that has lost its text fails every run.
	work, err := filepath.Abs(o.work)
	if err != nil {
		return err
	}
	over := &overlay{root: o.root, module: o.module, dir: filepath.Join(work, "overlay"), replace: map[string]string{}}
	if err := over.putMutations(all); err != nil {
		return err
	}
	path, err := over.write()
	if err != nil {
		return err
	}
	chosen := o.choose(all)
	if len(chosen) == 0 {
		return fmt.Errorf("none of %d mutations is chosen", len(all))
	}
	p := &programs{root: o.root, dir: filepath.Join(work, "tests")}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	start := time.Now()
	if err := p.build(ctx, path, dirsOf(chosen)); err != nil {
		return err
	}
	if err := p.expand(ctx, chosen); err != nil {
		return err
	}
	built := time.Now()
	if err := p.runBaseline(ctx, chosen, o); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d test programs built in %v; %d tests without a mutation: %v\n", len(dirsOf(chosen)),
		built.Sub(start).Round(time.Second), len(p.baseline), time.Since(built).Round(time.Second))
	results, err := o.runAll(ctx, p, chosen, out)
	if err != nil {
		return err
	}
	return report(results, out)
}

// choose returns the mutations that the flags select.
func (o *options) choose(all []*mutation) []*mutation {
	chosen := slices.DeleteFunc(slices.Clone(all), func(m *mutation) bool {
		return !o.files.MatchString(m.file) || !o.run.MatchString(m.name)
	})
	if o.sample <= 0 || o.sample >= len(chosen) {
		return chosen
	}
	sample := make([]*mutation, o.sample)
	for i := range sample {
		sample[i] = chosen[i*len(chosen)/o.sample]
	}
	return sample
}

// dirsOf returns the packages whose tests have to notice mutations.
func dirsOf(mutations []*mutation) (dirs []string) {
	for _, m := range mutations {
		for _, t := range m.tests {
			if !slices.Contains(dirs, t.dir) {
				dirs = append(dirs, t.dir)
			}
		}
	}
	return dirs
}

// A result is what the tests said of one mutation.
type result struct {
	*mutation
	killed, hung, reached bool
	by                    string
	took                  time.Duration
}

// runAll tells of each mutation what its tests say.
func (o *options) runAll(ctx context.Context, p *programs, mutations []*mutation, out io.Writer) ([]result, error) {
	results := make([]result, len(mutations))
	numbers := make([]int, len(mutations))
	for i := range numbers {
		numbers[i] = i
	}
	var mu sync.Mutex
	var failure error
	each(numbers, o.parallel, func(i int) {
		r, printed, err := p.judge(ctx, mutations[i], o.deadline)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failure = err
			return
		}
		results[i] = r
		if o.verbose {
			fmt.Fprintf(out, "%s\n%s\n", r.name, printed)
		}
		fmt.Fprintln(out, &r)
	})
	return results, failure
}

// judge runs the tests of a mutation, up to the first that fails.
func (p *programs) judge(ctx context.Context, m *mutation, deadline time.Duration) (r result, printed string, err error) {
	r.mutation = m
	start := time.Now()
	for _, t := range p.inOrder(m) {
		ran, err := p.try(ctx, t, m.number, deadline)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return r, printed, err
		}
		printed += ran.output
		r.reached = r.reached || ran.reaches(m)
		if !ran.passed {
			r.killed, r.hung, r.by = true, ran.hung, ran.by
			break
		}
	}
	r.took = time.Since(start)
	return r, printed, nil
}

func (r *result) String() string {
	line := fmt.Sprintf("%6.1f s  %-60s ", r.took.Seconds(), r.name)
	switch {
	case r.hung:
		return line + "killed: " + r.by + " hangs"
	case r.killed:
		return line + "killed: " + r.by
	case r.accepted != "":
		return line + "SURVIVED, accepted: " + r.accepted
	case !r.reached:
		return line + "SURVIVED: its tests do not reach it"
	default:
		return line + "SURVIVED"
	}
}

// report prints the table, and fails when a result is not as the data says.
func report(results []result, out io.Writer) error {
	type sum struct {
		mutations, killed, accepted, survived int
		took                                  time.Duration
	}
	sums := map[string]*sum{}
	var groups []string
	total := sum{}
	var wrong []result
	for _, r := range results {
		group := r.group()
		if sums[group] == nil {
			sums[group] = &sum{}
			groups = append(groups, group)
		}
		for _, s := range []*sum{sums[group], &total} {
			s.mutations++
			s.took += r.took
			switch {
			case r.killed:
				s.killed++
			case r.accepted != "":
				s.accepted++
			default:
				s.survived++
			}
		}
		if r.killed == (r.accepted != "") && !r.unsure {
			wrong = append(wrong, r)
		}
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tmutations\tkilled\taccepted\tsurvived\tseconds\t")
	slices.Sort(groups)
	for _, group := range append(groups, "all") {
		s := &total
		if group != "all" {
			s = sums[group]
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%.0f\t\n", group, s.mutations, s.killed, s.accepted, s.survived, s.took.Seconds())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range wrong {
		if r.killed {
			fmt.Fprintf(out, "\n%v: the reason to accept it does not hold: %s notices it\n", r.mutation, r.by)
		} else {
			fmt.Fprintf(out, "\n%v (%s): no test notices it\n", r.mutation, r.file)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d of %d mutations are not as they should be", len(wrong), len(results))
	}
	return nil
}
