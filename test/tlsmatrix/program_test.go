//go:build linux && (amd64 || arm64)

package tlsmatrix

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/customlabels/otelcol-customlabels/test/tlsmatrix/cell"
)

// A truth is what a program says of itself.
type truth struct {
	definers map[string]block
	threads  map[string]*thread
}

// block is where the main thread has a variable: a module's TLS block.
type block struct {
	abi            int
	module, offset uint64
}

type thread struct {
	name      string
	tid       int
	tp        uint64
	variables map[string]uint64 // addresses by definer; none of a thread that never uses them
}

// program is a running testdata/tls/writer.c.
type program struct {
	truth
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *os.File
	lines  *bufio.Scanner
	stderr bytes.Buffer
}

// Emulated machines are slow, and all cells compete for their CPUs.
const answerTimeout = time.Minute

// threadNames are those of all programs.
var threadNames = [...]string{"main", "early", "late", untouched}

// untouched is the thread that never uses a variable.
const untouched = "untouched"

func start(c cell.Cell, dir string) (*program, error) {
	p := &program{cmd: exec.Command(c.Program(dir), c.Args(dir)...)}
	p.definers, p.threads = map[string]block{}, map[string]*thread{}
	p.cmd.Env = append(os.Environ(), c.Env()...)
	p.cmd.Stderr = &p.stderr
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout = w
	p.stdout, p.lines = r, bufio.NewScanner(r)
	p.stdin, err = p.cmd.StdinPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	w.Close()
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	err = p.await("ready", p.learn)
	if err == nil {
		err = p.complete()
	}
	if err != nil {
		return nil, errors.Join(err, p.end())
	}
	return p, nil
}

func (p *program) pid() int { return p.cmd.Process.Pid }

// await passes lines to each up to one that says want.
func (p *program) await(want string, each func(string) error) error {
	if err := p.stdout.SetReadDeadline(time.Now().Add(answerTimeout)); err != nil {
		return err
	}
	for p.lines.Scan() && p.lines.Text() != want {
		if err := each(p.lines.Text()); err != nil {
			return err
		}
	}
	if p.lines.Text() != want {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait() // for all of its standard error
		return errors.Join(fmt.Errorf("the program did not say %q: %s", want, p.stderr.String()), p.lines.Err())
	}
	return nil
}

// learn takes in one line of what writer.c prints.
func (p *program) learn(line string) error {
	var name, definer string
	var b block
	var th thread
	var address uint64
	if n, _ := fmt.Sscanf(line, "definer %s %d %d %d", &name, &b.abi, &b.module, &b.offset); n == 4 {
		p.definers[name] = b
		return nil
	}
	if n, _ := fmt.Sscanf(line, "thread %s %d %v", &th.name, &th.tid, &th.tp); n == 3 {
		th.variables = map[string]uint64{}
		p.threads[th.name] = &th
		return nil
	}
	if n, _ := fmt.Sscanf(line, "variable %s %s %v", &name, &definer, &address); n == 3 && p.threads[name] != nil {
		p.threads[name].variables[definer] = address
		return nil
	}
	return fmt.Errorf("unexpected line %q", line)
}

// complete checks that there is a truth to compare with.
func (p *program) complete() error {
	for _, name := range threadNames {
		th := p.threads[name]
		switch {
		case th == nil || th.tid == 0 || th.tp == 0:
			return fmt.Errorf("the program says nothing of thread %s", name)
		case name == untouched && len(th.variables) != 0, name != untouched && len(th.variables) != len(p.definers):
			return fmt.Errorf("thread %s has variables of %d definers, of which there are %d", name, len(th.variables), len(p.definers))
		}
	}
	if len(p.threads) != len(threadNames) || len(p.definers) == 0 {
		return fmt.Errorf("%d threads, %d definers", len(p.threads), len(p.definers))
	}
	return nil
}

// burn keeps all threads busy for some CPU time each.
func (p *program) burn(d time.Duration) error {
	if _, err := fmt.Fprintf(p.stdin, "burn %d\n", d.Milliseconds()); err != nil {
		return err
	}
	return p.await("burnt", func(line string) error { return fmt.Errorf("unexpected line %q", line) })
}

// end ends the program and releases what it took.
func (p *program) end() error {
	p.stdin.Close()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // killed
	return p.stdout.Close()
}
