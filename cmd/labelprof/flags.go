// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// commaList is a flag of values separated by commas.
type commaList []string

func (l *commaList) String() string { return strings.Join(*l, ",") }

func (l *commaList) Set(s string) error {
	*l = nil
	for item := range strings.SplitSeq(s, ",") {
		if item == "" {
			return errors.New("an empty name")
		}
		*l = append(*l, item)
	}
	return nil
}

// repeated is a flag that may be given several times.
type repeated []string

func (r *repeated) String() string { return strings.Join(*r, " ") }

func (r *repeated) Set(s string) error {
	*r = append(*r, s)
	return nil
}

// viewFlags are the flags of everything that shows tables.
type viewFlags struct {
	by        commaList
	truth     repeated
	rows      int
	functions int
}

func (v *viewFlags) register(flags *flag.FlagSet) {
	v.by = commaList{"tenant"}
	flags.Var(&v.by, "by", "label `keys` to tell CPU time apart by, separated by commas")
	flags.Var(&v.truth, "truth", "`file` with the CPU time that a program measured itself (repeatable)")
	flags.IntVar(&v.rows, "rows", 20, "label values to show")
	flags.IntVar(&v.functions, "functions", 5, "functions to show for each label value")
}

// parse parses flags and arguments in any order and returns the arguments.
func parse(flags *flag.FlagSet, args []string, stderr io.Writer) ([]string, error) {
	flags.SetOutput(stderr)
	var rest []string
	for {
		if err := flags.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, errUsage // flags has printed it
		}
		if flags.NArg() == 0 {
			return rest, nil
		}
		rest = append(rest, flags.Arg(0))
		args = flags.Args()[1:]
	}
}

func usageError(stderr io.Writer, format string, args ...any) error {
	fmt.Fprintf(stderr, format+"\n", args...)
	return errUsage
}
