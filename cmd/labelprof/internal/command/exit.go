// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

// Exit codes.
const (
	ExitOK       = 0
	ExitError    = 1
	ExitUsage    = 2 // also of check when it could not judge
	ExitNoLabels = 3 // of inspect
)

// ErrUsage says that the command line makes no sense; what and how is printed already.
var ErrUsage = errors.New("usage")

// ErrReported says that something failed; what is printed already.
var ErrReported = errors.New("failed")

// ErrNoLabels says that a process has no labels that could be read.
var ErrNoLabels = errors.New("no labels")

// ErrNotJudged says that there is nothing to judge by; what is printed already.
var ErrNotJudged = errors.New("not judged")

// ErrNoSamples keeps a script from taking an empty profile for a result.
var ErrNoSamples = errors.New("no samples")

// ExitCode returns the exit code that says how a command ended, and prints what has not been
// printed yet.
func ExitCode(name string, err error, stderr io.Writer) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return ExitOK
	case errors.Is(err, ErrUsage), errors.Is(err, ErrNotJudged):
		return ExitUsage
	case errors.Is(err, ErrNoLabels):
		return ExitNoLabels
	case errors.Is(err, ErrReported):
		return ExitError
	default:
		fmt.Fprintf(stderr, "labelprof %s: %v\n", name, err)
		return ExitError
	}
}
