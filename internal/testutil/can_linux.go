// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// MissingEnv names a file to which test binaries add what their machine cannot do. See Can.
const MissingEnv = "CUSTOM_LABELS_MISSING"

// An Ability is what a machine may lack that the receiver runs on. Whether this one has
// it is found out by trying: a kernel's configuration says less.
type Ability struct {
	name string
	try  func() error // once
}

// What tests ask for. Nothing that the receiver needs is among it: see RequireBPF.
var (
	// Run32Bit: a 64-bit kernel runs 32-bit programs.
	Run32Bit = ability("32-bit programs", run32Bit)
	// TraceFunctions: BPF programs run where a function of the kernel begins (fentry).
	TraceFunctions = ability("BPF programs at functions of the kernel", traceFunction)
	// Userfaultfd: a process can leave faults of its memory unserved.
	Userfaultfd = ability("userfaultfd", userfaultfd)
	// FUSE: a program can be a file system.
	FUSE = ability("FUSE", fuse)
	// Overlay: directories can be mounted over others, as container engines do.
	Overlay = ability("overlayfs", overlay)
	// Images: an ImageDevice works.
	Images = ability("EROFS on loop devices", images)
	// TimeNamespaces: a program can be run with clocks of its own.
	TimeNamespaces = ability("time namespaces by unshare(1)", timeNamespace)
	// CgroupV1: a hierarchy of cgroup v1 can be mounted.
	CgroupV1 = ability("cgroup v1", cgroupV1)
	// SwitchCPUs: the second CPU can be taken away and brought back.
	SwitchCPUs = ability("a second CPU that can be switched off", switchCPU)
)

func ability(name string, try func() error) *Ability {
	return &Ability{name: name, try: sync.OnceValue(try)}
}

// lacking are lines about what tests left out.
var lacking struct {
	sync.Mutex
	lines []string
}

// Can reports whether this machine has an ability. Where it has not, Main says that the
// test left out what needs it.
func Can(t testing.TB, a *Ability) bool {
	t.Helper()
	return can(t, a, "part of "+t.Name())
}

// Need skips a test on a machine that lacks an ability, even where MustRunEnv is set:
// Main names the test, by which scripts/figure.sh tells it from others.
func Need(t testing.TB, a *Ability) {
	t.Helper()
	if !can(t, a, t.Name()) {
		t.Skipf("not on this machine: %s: %v", a.name, a.try())
	}
}

func can(t testing.TB, a *Ability, what string) bool {
	t.Helper()
	err := a.try()
	if err == nil {
		return true
	}
	lacking.Lock()
	defer lacking.Unlock()
	line := fmt.Sprintf("not on this machine: %s: %v: %s", a.name, err, what)
	if !slices.Contains(lacking.lines, line) {
		lacking.lines = append(lacking.lines, line)
	}
	return false
}

// Main runs the tests of a package, looks for goroutines that they left behind, and says
// at the end what this machine could not do for them.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := sayLacking(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
		os.Exit(code)
	}))
}

func sayLacking() error {
	lacking.Lock()
	defer lacking.Unlock()
	if len(lacking.lines) == 0 {
		return nil
	}
	text := strings.Join(lacking.lines, "\n") + "\n"
	fmt.Print(text)
	path := os.Getenv(MissingEnv)
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("list what this machine lacks: %w", err)
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

const exitStatus32 = 42

func run32Bit() error {
	program := exit32Bit()
	if program == nil {
		return errors.New("there is none for this architecture")
	}
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "exit32")
	if err := os.WriteFile(path, program, 0o700); err != nil { //nolint:gosec // a program
		return err
	}
	err = exec.Command(path).Run()
	for errors.Is(err, unix.ETXTBSY) { // something that is being started has the file open, too
		err = exec.Command(path).Run()
	}
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() == exitStatus32 {
		return nil
	}
	return bare(err)
}

func traceFunction() error {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type:         ebpf.Tracing,
		AttachType:   ebpf.AttachTraceFEntry,
		AttachTo:     "security_task_prctl",
		License:      "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return fmt.Errorf("load: %w", bare(err))
	}
	defer program.Close()
	attached, err := link.AttachTracing(link.TracingOptions{Program: program})
	if err != nil {
		return fmt.Errorf("attach: %w", bare(err))
	}
	return attached.Close()
}

func overlay() error {
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	return unix.Close(fs)
}

func userfaultfd() error {
	fd, _, err := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if err != 0 {
		return err
	}
	return unix.Close(int(fd))
}

func fuse() error {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// bare is what the kernel said, without paths and advice.
func bare(err error) error {
	var said unix.Errno
	if errors.As(err, &said) {
		return said
	}
	return err
}

func timeNamespace() error {
	return exec.Command("unshare", "--time", "--monotonic", "1", "true").Run()
}

// CgroupV1Options are those of a hierarchy without controllers.
const CgroupV1Options = "none,name=custom_labels_test"

func cgroupV1() error {
	dir, err := os.MkdirTemp("", "cgroup")
	if err != nil {
		return err
	}
	if err := unix.Mount("none", dir, "cgroup", 0, CgroupV1Options); err != nil {
		return errors.Join(err, os.Remove(dir))
	}
	return errors.Join(unix.Unmount(dir, 0), os.Remove(dir))
}

// switchCPU asks for what is so already.
func switchCPU() error { return os.WriteFile("/sys/devices/system/cpu/cpu1/online", []byte("1"), 0) }
