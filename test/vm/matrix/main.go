//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	list := flag.Bool("list", false, "print the names of the cells")
	quick := flag.Bool("quick", false, "only run the states of labels, and load the programs")
	flag.Parse()
	if err := runMatrix(flag.Args(), *list, *quick); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

func runMatrix(names []string, list, quick bool) error {
	chosen, err := choose(names)
	if err != nil {
		return err
	}
	if list {
		for i := range chosen {
			fmt.Println(chosen[i].name())
		}
		return nil
	}
	start := time.Now()
	for i := range chosen {
		if chosen[i].quick = quick; quick {
			chosen[i].says = "" // by other tests
		}
	}
	for _, g := range goals(chosen) {
		if err := g.build(); err != nil {
			return fmt.Errorf("build %s for %s: %w", g.name, g.arch, err)
		}
	}
	for i := range chosen {
		c := &chosen[i]
		if err := fetch(c); err != nil {
			return fmt.Errorf("fetch the kernel of %s: %w", c.name(), err)
		}
	}
	fmt.Printf("kernels and tests are there after %d s\n", int(time.Since(start).Seconds()))
	var outcomes []outcome
	failed := 0
	for i := range chosen {
		o, log := run(&chosen[i])
		outcomes = append(outcomes, o)
		if o.err != nil {
			failed++
			show(log)
			fmt.Printf("%s failed: %v\n", o.cell.name(), o.err)
			continue
		}
		fmt.Printf("%-16s %s\n", o.cell.name(), o.String())
		if o.boots > 1 {
			fmt.Printf("%-16s booted at attempt %d\n", "", o.boots)
		}
	}
	fmt.Println()
	if err := printTable(os.Stdout, outcomes); err != nil {
		return err
	}
	fmt.Printf("%d of %d cells passed in %d s\n", len(chosen)-failed, len(chosen), int(time.Since(start).Seconds()))
	if failed > 0 {
		return fmt.Errorf("%d of %d cells failed", failed, len(chosen))
	}
	return nil
}

// show prints what a failed cell has said.
func show(log string) {
	b, err := os.ReadFile(log)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s:\n%s", log, b)
}
