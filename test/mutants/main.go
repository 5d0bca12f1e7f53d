package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Options are the flags.
type options struct {
	root, module string
	data         string
	files, run   *regexp.Regexp
	sample       int
	parallel     int
	verbose      bool
	work         string
	deadline     time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := start(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, args []string, out io.Writer) (err error) {
	var (
		o          options
		files, run string
	)
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.StringVar(&files, "package", "", "only mutations of files whose path this `pattern` matches")
	flags.StringVar(&run, "run", "", "only mutations whose name this `pattern` matches")
	flags.IntVar(&o.sample, "sample", 0, "only so many mutations, evenly from all; the same ones each time")
	flags.IntVar(&o.parallel, "j", 2, "test programs at a time")
	flags.DurationVar(&o.deadline, "deadline", 20*time.Second, "`time` after which a test is said to hang, if it is more than five times what it takes without a mutation")
	flags.BoolVar(&o.verbose, "v", false, "print what the tests of each mutation print")
	flags.StringVar(&o.data, "data", "", "`directory` of the mutations; default: test/mutants/data")
	flags.StringVar(&o.work, "work", "", "`directory` for what is generated, which is kept; default: a temporary one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || o.parallel < 1 {
		return errors.New("wants flags only, and -j of at least 1")
	}
	if o.files, err = regexp.Compile(files); err != nil {
		return err
	}
	if o.run, err = regexp.Compile(run); err != nil {
		return err
	}
	if o.root, o.module, err = repository(); err != nil {
		return err
	}
	if o.data == "" {
		o.data = filepath.Join(o.root, "test", "mutants", "data")
	}
	if o.work == "" {
		if o.work, err = os.MkdirTemp("", "mutants"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.work)) }()
		if err := os.Chmod(o.work, 0o755); err != nil { // tests have children of other users
			return err
		}
	}
	return o.mutate(ctx, out)
}

// repository returns the root of the working tree and the path of its module.
func repository() (root, module string, err error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}\n{{.Path}}").Output()
	if err != nil {
		return "", "", fmt.Errorf("find the repository: %w", err)
	}
	root, module, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	return root, module, nil
}
