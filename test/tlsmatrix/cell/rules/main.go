// Command rules prints the rules by which make builds the TLS corpus: see
// testdata/tls/Makefile.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/customlabels/otelcol-customlabels/test/tlsmatrix/cell"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	for _, arch := range []string{cell.X86, cell.AArch64} {
		for _, target := range cell.Targets(arch) {
			for _, f := range cell.Shared(target) {
				rule(out, target, f)
			}
			for _, c := range cell.List(target) {
				for _, f := range c.Files() {
					rule(out, target, f)
				}
			}
		}
	}
	if err := out.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// rule prints one target. CC_* and the flags for all are the Makefile's.
func rule(out *bufio.Writer, target cell.Target, f cell.File) {
	output := "$(OUT)/" + f.Output
	inputs := strings.Join(f.Sources, " ")
	for _, input := range f.Inputs {
		inputs += " $(OUT)/" + input
	}
	fmt.Fprintf(out, "%s: %s\n", target.Arch, output)
	fmt.Fprintf(out, "%s: %s $(COMMON)\n\t@mkdir -p $(@D)\n", output, inputs)
	fmt.Fprintf(out, "\t$(CC_%s) $(FLAGS_%s) %s -o $@ %s\n", target, target.Compiler, strings.Join(f.Flags, " "), inputs)
	if f.Bare != "" {
		fmt.Fprintf(out, "%s: $(OUT)/%s\n", target.Arch, f.Bare)
		fmt.Fprintf(out, "$(OUT)/%s: %s\n\t$(OBJCOPY) --strip-sections $< $@\n", f.Bare, output)
	}
	fmt.Fprintln(out)
}
