// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
)

// Exit codes of all commands; what each means for one of them is in [Exits].
const (
	ExitOK       = 0
	ExitError    = 1
	ExitUsage    = 2 // also of check when it could not judge, or not say so
	ExitNoLabels = 3 // of inspect
)

// Exits returns what the exit codes of a command mean, by code.
func Exits(name string) []string {
	const usage = "wrong usage"
	switch name {
	case "serve":
		return []string{"ended by a signal or after --duration, with samples", "cannot listen, read or write, files are cut or not all read, samples had no room or are none", usage}
	case "top":
		return []string{"printed", "a file cannot be read or is cut, the tables cannot be written, or there are no samples", usage}
	case "pprof":
		return []string{"written", "a file cannot be read or written, or is cut, samples had no room, or there are none", usage}
	case "push":
		return []string{"all is sent", "a file cannot be read or is cut, a request was not taken, or there are no samples", usage}
	case "inspect":
		return []string{"every process has a label source that can be read", "a process could not be inspected, or what was found cannot be written", usage, "a process has no label source that can be read"}
	case "check":
		return []string{"all rules hold that could be judged", "a rule is broken", "nothing or not all could be judged, the report cannot be written, or wrong usage"}
	}
	return nil
}

// ErrUsage says that the command line makes no sense; what and how is printed already.
var ErrUsage = errors.New("usage")

// ErrReported says that something failed; what is printed already.
var ErrReported = errors.New("failed")

// ErrNoLabels says that a process has no labels that could be read.
var ErrNoLabels = errors.New("no labels")

// ErrNotJudged says that there is nothing to judge by, or no report of it; what is printed already.
var ErrNotJudged = errors.New("not judged")

// ErrNoSamples keeps a script from taking an empty profile for a result.
var ErrNoSamples = errors.New("no samples")

// ExitCode returns the exit code that says how a command ended, and prints what has not been
// printed yet. What errors quote of files and servers, and names of files, are escaped.
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
		lines := strings.Split(err.Error(), "\n") // as of errors.Join
		for i := range lines {
			lines[i] = terminal.Escape(lines[i])
		}
		fmt.Fprintf(stderr, "labelprof %s: %s\n", name, strings.Join(lines, "\n"))
		return ExitError
	}
}
