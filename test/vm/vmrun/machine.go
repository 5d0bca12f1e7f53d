//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/customlabels/otelcol-customlabels/test/vm/internal/guest"
)

var (
	errTimeout     = errors.New("the time limit has passed")
	errBootTimeout = fmt.Errorf("no user space after %v", bootTimeout)
)

// bootTimeout is ten times what a boot takes on a machine that does much else. What qemu waits
// for a CPU is not in it.
const bootTimeout = 100 * time.Second

// diskBytes is room for what comes back; the file is sparse.
const diskBytes = 1 << 30

// A machine is one run of qemu; its files are in a directory of its own.
type machine struct {
	options *options
	config  guest.Config
	work    string
}

func newMachine(o *options, work string) (*machine, error) {
	m := &machine{options: o, work: work}
	adds := []addition{{o.init, "/init"}}
	programs := map[string]string{}
	for _, c := range o.commands {
		to := guestPath(c.program)
		if other, ok := programs[to]; ok && other != c.program {
			return nil, fmt.Errorf("%s and %s would both be %s in the guest", other, c.program, to)
		}
		programs[to] = c.program
		adds = append(adds, addition{c.program, to})
		m.config.Commands = append(m.config.Commands, guest.Command{
			Args: append([]string{to}, c.args...),
			Env:  slices.Concat([]string{"PATH=/bin:/sbin:/usr/bin", "HOME=/root", "VMRUN=1"}, o.env, c.env),
		})
	}
	config, err := json.Marshal(m.config)
	if err != nil {
		return nil, err
	}
	f, err := os.Create(m.file("initramfs"))
	if err != nil {
		return nil, err
	}
	err = writeInitramfs(f, config, append(adds, o.adds...))
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return nil, fmt.Errorf("write the initramfs: %w", err)
	}
	return m, nil
}

func (m *machine) file(name string) string { return filepath.Join(m.work, name) }

// run returns when the guest has powered off or the time limit has passed.
func (m *machine) run() error {
	if m.options.out != "" {
		if err := os.WriteFile(m.file("disk"), nil, 0o600); err != nil {
			return err
		}
		if err := os.Truncate(m.file("disk"), diskBytes); err != nil {
			return err
		}
	}
	program, args := m.command()
	qemu := exec.Command(program, args...)
	qemu.Stdout, qemu.Stderr = os.Stdout, os.Stderr // no standard input
	// It doesn't outlive us, and thereby this thread, which main has locked.
	qemu.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := qemu.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- qemu.Wait() }()
	end, boot := time.After(m.options.timeout), time.After(bootTimeout)
	counted := time.Duration(0) // of what it has waited
	for {
		select {
		case err := <-ended:
			return err
		case <-boot:
			if m.isUp() {
				continue
			}
			if waited := waitedForCPU(qemu.Process.Pid); waited > counted+time.Second {
				boot = time.After(waited - counted)
				counted = waited
				continue
			}
			_ = qemu.Process.Kill() // it may just have ended
			return errors.Join(errBootTimeout, <-ended)
		case <-end:
			_ = qemu.Process.Kill() // likewise
			return errors.Join(errTimeout, <-ended)
		}
	}
}

// waitedForCPU is how long the thread of a process that waited longest for a CPU has done so.
func waitedForCPU(pid int) (longest time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)) // the pattern is right
	for _, path := range threads {
		b, _ := os.ReadFile(path) // a thread may have ended
		var ran, waited time.Duration
		_, _ = fmt.Sscan(string(b), &ran, &waited)
		longest = max(longest, waited)
	}
	return longest
}

// isUp tells whether the guest has reached user space.
func (m *machine) isUp() bool {
	_, _, err := m.control()
	return !errors.Is(err, errNoBoot)
}

// command is qemu's.
func (m *machine) command() (program string, args []string) {
	o := m.options
	args = []string{
		"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none",
		"-accel", "tcg", "-smp", fmt.Sprint(o.cpus), "-m", fmt.Sprint(o.memoryMiB),
		"-kernel", o.kernel, "-initrd", m.file("initramfs"),
		"-chardev", "file,id=console,path=" + m.file("console"), "-serial", "chardev:console",
		"-chardev", "stdio,id=output,signal=off", "-chardev", "file,id=control,path=" + m.file("control"),
		"-device", "pci-serial-2x,chardev1=output,chardev2=control",
	}
	if o.out != "" {
		args = append(args, "-drive", "if=none,id=out,format=raw,cache=unsafe,file="+m.file("disk"),
			"-device", "nvme,drive=out,serial=out")
	}
	kernel := []string{"panic=-1", "oops=panic", "quiet", "loglevel=4"}
	cpu := ""
	switch o.arch {
	case "arm64":
		// Plain max computes QARMA for pointer authentication: boots take four times as
		// long. Without kpti=off a system call on a cortex-a72 takes 14 times as long.
		program, cpu = "qemu-system-aarch64", "cortex-a72"
		args = append(args, "-machine", "virt")
		kernel = append(kernel, "console=ttyAMA0", "kpti=off")
	case "amd64":
		program, cpu = "qemu-system-x86_64", "max"
		kernel = append(kernel, "console=ttyS0")
	}
	if o.cpu != "" {
		cpu = o.cpu
	}
	if o.appended != "" {
		kernel = append(kernel, o.appended)
	}
	args = append(args, "-cpu", cpu, "-append", strings.Join(kernel, " "))
	return program, append(args, o.qemu...)
}

func (m *machine) console() []byte {
	b, err := os.ReadFile(m.file("console"))
	if err != nil {
		return []byte(err.Error())
	}
	return b
}

// errNoBoot says that the guest has not reached user space.
var errNoBoot = errors.New("it did not reach user space")

// control is what came by the control port: the result and the rest.
func (m *machine) control() (line, rest []byte, err error) {
	b, err := os.ReadFile(m.file("control"))
	if err != nil {
		return nil, nil, err
	}
	b, ok := bytes.CutPrefix(b, []byte(guest.Up+"\n"))
	if !ok {
		return nil, nil, errNoBoot
	}
	line, rest, ok = bytes.Cut(b, []byte("\n"))
	if !ok {
		return nil, nil, fmt.Errorf("%d bytes of a result", len(b))
	}
	return line, rest, nil
}

func (m *machine) result() (*guest.Result, error) {
	line, _, err := m.control()
	if err != nil {
		return nil, err
	}
	return parseResult(line, len(m.config.Commands))
}

func (m *machine) unpackOut(dir string) error {
	_, rest, err := m.control()
	if err != nil {
		return err
	}
	result, err := m.result()
	if err != nil {
		return err
	}
	var r io.Reader = bytes.NewReader(rest)
	if result.Disk {
		disk, err := os.Open(m.file("disk"))
		if err != nil {
			return err
		}
		defer disk.Close()
		r = disk
	}
	return untar(r, dir)
}
