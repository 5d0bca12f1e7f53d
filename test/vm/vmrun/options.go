//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// next separates the programs on the command line.
const next = "--next"

type options struct {
	arch, kernel, init, cpu, appended string
	cpus, memoryMiB, boots            int
	timeout                           time.Duration
	out, console, result              string
	verbose                           bool
	adds                              []addition
	env, qemu                         list
	commands                          []command
}

// A command is a program to run, with what its environment has besides that of all.
type command struct {
	env     []string
	program string // path on the host
	args    []string
}

// An addition is a file or directory of the host that the guest has too.
type addition struct{ from, to string }

type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

func parseOptions(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("vmrun", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.arch, "arch", runtime.GOARCH, "architecture of the guest: amd64 or arm64")
	flags.StringVar(&o.kernel, "kernel", "", "kernel image")
	flags.StringVar(&o.init, "init", "", "guestinit, built for the guest")
	flags.StringVar(&o.cpu, "cpu", "", "qemu's CPU model (default: cortex-a72 or max)")
	flags.StringVar(&o.appended, "append", "", "more kernel arguments")
	flags.IntVar(&o.cpus, "smp", 2, "CPUs of the guest")
	flags.IntVar(&o.memoryMiB, "m", 1024, "memory of the guest, MiB")
	flags.IntVar(&o.boots, "boots", 1, "attempts at booting; no program runs twice")
	flags.DurationVar(&o.timeout, "timeout", 2*time.Minute, "time limit from start to end")
	flags.StringVar(&o.out, "out", "", "directory that receives what the programs leave in /out")
	flags.StringVar(&o.console, "console", "", "keep the console's log in this file")
	flags.StringVar(&o.result, "result", "", "write kernel, page size and the programs' status to this file, as JSON")
	flags.BoolVar(&o.verbose, "v", false, "say what the kernel is and how long it took")
	flags.Func("add", "SRC:DST, a file or directory to put into the guest (repeatable)", func(s string) error {
		from, to, ok := strings.Cut(s, ":")
		if !ok || from == "" || to == "" {
			return errors.New("want SRC:DST")
		}
		o.adds = append(o.adds, addition{from, to})
		return nil
	})
	flags.Var(&o.env, "env", "KEY=VALUE for the programs (repeatable)")
	flags.Var(&o.qemu, "qemu", "one more argument of qemu (repeatable)")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if o.arch != "amd64" && o.arch != "arm64" {
		return nil, fmt.Errorf("unknown architecture %q: amd64 or arm64", o.arch)
	}
	if o.kernel == "" || o.init == "" {
		return nil, errors.New("-kernel and -init are required")
	}
	var err error
	o.commands, err = parseCommands(flags.Args())
	return o, err
}

// parseCommands splits the arguments at each next; as in a shell, a command may begin
// with assignments.
func parseCommands(args []string) ([]command, error) {
	var commands []command
	for more := true; more; {
		words := args
		i := slices.Index(args, next)
		if more = i >= 0; more {
			words, args = args[:i], args[i+1:]
		}
		program := slices.IndexFunc(words, func(word string) bool { return !strings.Contains(word, "=") })
		if program < 0 {
			return nil, fmt.Errorf("a program is missing; want: vmrun [flags] -- PROGRAM [ARG]... [%s PROGRAM [ARG]...]", next)
		}
		commands = append(commands, command{words[:program], words[program], words[program+1:]})
	}
	return commands, nil
}

// guestPath is where a program of the host is in the guest.
func guestPath(program string) string { return "/bin/" + filepath.Base(program) }
