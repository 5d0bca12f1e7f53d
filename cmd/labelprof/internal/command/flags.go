// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
)

// ViewFlags are the flags of everything that shows tables.
type ViewFlags struct {
	By        List
	Truth     Repeated
	Rows      Count
	Functions Count
}

// Register adds the flags, with their defaults.
func (v *ViewFlags) Register(flags *flag.FlagSet) {
	v.By = List{"tenant"}
	flags.Var(&v.By, "by", "label `keys` to tell CPU time apart by, separated by commas")
	flags.Var(&v.Truth, "truth", "`file` with the CPU time that a program measured itself (repeatable)")
	v.Rows, v.Functions = 20, 5
	flags.Var(&v.Rows, "rows", "`number` of label values to show")
	flags.Var(&v.Functions, "functions", "`number` of functions to show for each label value")
}

// Parse parses flags and arguments in any order and returns the arguments, which all is that stands
// behind "--". It prints the help to
// stdout and fails with flag.ErrHelp if that is asked for; what is wrong is printed to stderr, and
// it fails with ErrUsage.
func Parse(h *Help, flags *flag.FlagSet, args []string, stdout, stderr io.Writer) ([]string, error) {
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	var rest, behind []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, behind = args[:i], args[i+1:]
	}
	for {
		switch err := flags.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			h.write(stdout, flags)
			return nil, err
		case err != nil:
			return nil, UsageError(stderr, "labelprof %s: %s\nlabelprof %s -h lists the flags.", h.Name, terminal.Escape(err.Error()), h.Name)
		case flags.NArg() == 0:
			return append(rest, behind...), nil
		}
		rest = append(rest, flags.Arg(0))
		args = flags.Args()[1:]
	}
}

// NoDash refuses "-" as a file to write, which elsewhere is the standard output: it would become a
// file of that name.
func NoDash(stderr io.Writer, name, flag, file string) error {
	if file != "-" {
		return nil
	}
	return UsageError(stderr, "labelprof %s: %s -: the standard output is /dev/stdout, a file of that name ./-", name, flag)
}

// UsageError prints what makes no sense and returns ErrUsage.
func UsageError(stderr io.Writer, format string, args ...any) error {
	fmt.Fprintf(stderr, format+"\n", args...)
	return ErrUsage
}
