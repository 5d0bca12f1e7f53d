//go:build linux && (amd64 || arm64)

package bpf

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

const btfPath = "/sys/kernel/btf/vmlinux"

// ErrUnsupported marks errors that name what this host or user lacks.
var ErrUnsupported = errors.New("not supported")

// checkSupport returns what the kernel can do, or an error of one sentence that names what is
// missing.
func checkSupport(types *btf.Cache) (kernel, error) {
	if _, err := os.Stat(btfPath); err != nil {
		return kernel{}, fmt.Errorf("%w: the kernel has no BTF (%s is missing; it needs CONFIG_DEBUG_INFO_BTF=y)", ErrUnsupported, btfPath)
	}
	caps, err := effectiveCapabilities()
	if err != nil {
		return kernel{}, err
	}
	if err := checkCapabilities(caps, refusingParanoia()); err != nil {
		return kernel{}, err
	}
	known, err := readKernelTypes(types)
	if err != nil {
		return kernel{}, err
	}
	var memlock error
	if known.memlock {
		memlock = raiseMemlock()
	}
	k, err := checkKernel(needed(types), better(), known)
	k.memlock = memlock
	return k, err
}

// raiseMemlock lets maps and programs take more memory than RLIMIT_MEMLOCK, or all that its hard limit allows. Where that
// is too little to load them, the error says why.
func raiseMemlock() error {
	limit := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	err := unix.Prlimit(0, unix.RLIMIT_MEMLOCK, &limit, nil)
	if err == nil {
		return nil
	}
	if unix.Prlimit(0, unix.RLIMIT_MEMLOCK, nil, &limit) == nil {
		limit.Cur = limit.Max
		_ = unix.Prlimit(0, unix.RLIMIT_MEMLOCK, &limit, nil)
	}
	return fmt.Errorf("raise RLIMIT_MEMLOCK, which kernels before 5.11 look at (grant CAP_SYS_RESOURCE, or raise it for the collector): %w", err)
}

// loadError is why something could not be loaded. Where that was not allowed, the library's own
// words advise to raise RLIMIT_MEMLOCK, which most kernels do not look at.
func (k *kernel) loadError(err error) error { return k.loadErrorIn(err, lockdown(), refusesAll) }

func (k *kernel) loadErrorIn(err error, lockdown string, refusesAll func() bool) error {
	switch {
	case lockdown == lockdownConfidentiality:
		return fmt.Errorf("%w (the kernel is locked down: %s says %s, and BPF programs must not read kernel memory)", err, lockdownPath, lockdown)
	case errors.Is(err, unix.EPERM) && k.memlock != nil:
		return fmt.Errorf("%w: %w", unix.EPERM, k.memlock)
	case errors.Is(err, unix.EPERM) && refusesAll():
		return fmt.Errorf("%w%s", unix.EPERM, refusedByOthers)
	case errors.Is(err, unix.EPERM): // as for programs that trace functions, on some kernels
		return unix.EPERM
	case errors.Is(err, unix.EACCES) && refusesAll(): // else it is the verifier's word
		return fmt.Errorf("%w%s", err, refusedByOthers)
	}
	return err
}

// refusesAll reports whether the caller may not load any program for perf events.
func refusesAll() bool {
	p, err := ebpf.NewProgramWithOptions(&ebpf.ProgramSpec{
		Type: ebpf.PerfEvent, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	}, ebpf.ProgramOptions{LogDisabled: true})
	if err != nil {
		return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)
	}
	p.Close()
	return false
}

// refusedByOthers is what is left when the capabilities are there.
const refusedByOthers = ", though the capabilities are there: they may be those of a user namespace only, or a seccomp profile, SELinux or AppArmor refuses bpf(2)"

const (
	lockdownPath            = "/sys/kernel/security/lockdown"
	lockdownConfidentiality = "confidentiality"
)

// lockdown returns the level of kernel lockdown (kernel_lockdown(7)), "" where it is not told. In a container it is
// mostly told by what the host's first process sees.
func lockdown() string {
	for _, root := range [...]string{"", "/proc/1/root"} {
		if b, err := os.ReadFile(root + lockdownPath); err == nil {
			return chosen(string(b))
		}
	}
	return ""
}

// chosen is the word that is in brackets.
func chosen(words string) string {
	_, rest, _ := strings.Cut(words, "[")
	word, _, _ := strings.Cut(rest, "]")
	return word
}

// checkCapabilities knows what perf_event_open(2) and bpf(2) ask for. paranoid is the
// value of kernel.perf_event_paranoid if the kernel refuses CAP_PERFMON for it, else 0.
func checkCapabilities(caps uint64, paranoid int) error {
	has := func(c int) bool { return caps&(1<<uint(c)) != 0 }
	if has(unix.CAP_SYS_ADMIN) {
		return nil
	}
	var missing []string
	if !has(unix.CAP_BPF) {
		missing = append(missing, "CAP_BPF")
	}
	if !has(unix.CAP_PERFMON) {
		missing = append(missing, "CAP_PERFMON")
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: missing capability %s (run as root, or grant BPF, PERFMON, SYS_PTRACE, DAC_READ_SEARCH, CHECKPOINT_RESTORE and SYSLOG)",
			ErrUnsupported, strings.Join(missing, " and "))
	}
	if paranoid > 0 {
		return fmt.Errorf("%w: missing capability CAP_SYS_ADMIN, which kernel.perf_event_paranoid=%d asks for (or set it to 2)",
			ErrUnsupported, paranoid)
	}
	return nil
}

// refusingParanoia returns kernel.perf_event_paranoid if it is above 2 and the kernel
// is one of those (Debian's, Android's) that then refuse even CAP_PERFMON, else 0.
func refusingParanoia() int {
	paranoid := perfEventParanoid()
	if paranoid <= 2 {
		return 0
	}
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_DUMMY, Bits: unix.PerfBitDisabled}
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, os.Getpid(), -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return paranoid
	}
	if err == nil {
		unix.Close(fd)
	}
	return 0
}

// yamaNobody is a kernel.yama.ptrace_scope at which nobody may attach to a process (Documentation/admin-guide/LSM/Yama.rst).
const yamaNobody = 3

// yamaScope returns kernel.yama.ptrace_scope, or 0 where the kernel has no Yama.
func yamaScope() int {
	text, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	if err != nil {
		return 0
	}
	scope, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return scope
}

// Degradations says in a sentence each what it costs that the caller lacks capabilities which
// sampling does without, may not read memory, or does not see the host's processes.
func Degradations() ([]string, error) {
	caps, err := effectiveCapabilities()
	if err != nil {
		return nil, err
	}
	namespace, err := pidNamespace()
	if err != nil {
		return nil, err
	}
	return degradations(caps, namespace, othersRefused(os.Readlink), yamaScope()), nil
}

// othersRefused reports whether processes outside of a container may not be read. Of the first process alone that says
// nothing, as the system may protect it; kernel threads, whose parent is the second, have no executable.
func othersRefused(readlink func(string) (string, error)) bool {
	for _, exe := range []string{"/proc/1/exe", "/proc/2/exe"} {
		if _, err := readlink(exe); !errors.Is(err, os.ErrPermission) {
			return false
		}
	}
	return true
}

// degradations are those for want of capabilities, in a PID namespace (0: the first), where processes outside of a
// container may not be read, or may, with a kernel.yama.ptrace_scope.
func degradations(caps uint64, namespace uint32, refused bool, yama int) (sentences []string) {
	if namespace != 0 {
		sentences = append(sentences, "the collector has a PID namespace of its own, as in a container without the host's PIDs: "+
			"processes outside of it are sampled, but have no PID, user, container, labels or names of functions; give it the host's (--pid=host, hostPID: true), which for a node that is a container itself (kind) are the node's")
	}
	lacks := func(any ...int) bool {
		for _, c := range any {
			if caps&(1<<uint(c)) != 0 {
				return false
			}
		}
		return true
	}
	add := func(capability, cost string) {
		sentences = append(sentences, "missing capability "+capability+": "+cost)
	}
	if lacks(unix.CAP_SYS_PTRACE) {
		// Newer kernels let CAP_PERFMON read /proc/PID/maps.
		add("CAP_SYS_PTRACE", "processes of other users have no labels and, on older kernels, no unwind rows and no names of functions")
	} else if refused {
		sentences = append(sentences, "processes outside of the collector's container cannot be read, though CAP_SYS_PTRACE is there: they have no labels and, on older kernels, no unwind rows and no names of functions; "+
			"AppArmor or SELinux refuses it (appArmorProfile: {type: Unconfined}), or the capability is that of a user namespace only")
	}
	if yama >= yamaNobody {
		sentences = append(sentences, fmt.Sprintf("kernel.yama.ptrace_scope is %d: nobody may read the memory of a process from user space, so that only Go programs have labels, and there are no process contexts, "+
			"and no functions of Python, Java and JavaScript; 2 lets CAP_SYS_PTRACE read it, after a restart of the host", yama))
	}
	if lacks(unix.CAP_DAC_READ_SEARCH, unix.CAP_DAC_OVERRIDE) {
		add("CAP_DAC_READ_SEARCH", "executables and libraries that not everyone may read, or that were deleted since they were loaded, have no labels, no unwind rows and no names of functions")
	}
	if lacks(unix.CAP_CHECKPOINT_RESTORE, unix.CAP_SYS_ADMIN) {
		add("CAP_CHECKPOINT_RESTORE", "executables and libraries that were deleted or replaced since they were loaded have no labels, no unwind rows and no names of functions")
	}
	if lacks(unix.CAP_SYSLOG) {
		add("CAP_SYSLOG", "functions of the kernel may have no names")
	}
	return sentences
}

func effectiveCapabilities() (uint64, error) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("read capabilities: %w", err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		if v, ok := strings.CutPrefix(sc.Text(), "CapEff:"); ok {
			caps, err := strconv.ParseUint(strings.TrimSpace(v), 16, 64)
			if err != nil {
				return 0, fmt.Errorf("read capabilities: %w", err)
			}
			return caps, nil
		}
	}
	return 0, errors.New("read capabilities: no CapEff in /proc/self/status")
}

// perfEventParanoid returns kernel.perf_event_paranoid, or the kernel's default where it can't be read.
func perfEventParanoid() int {
	const kernelDefault = 2
	b, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	if err != nil {
		return kernelDefault
	}
	v, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return kernelDefault
	}
	return v
}

// initPIDNamespace is PROC_PID_INIT_INO (include/linux/proc_ns.h).
const initPIDNamespace = 0xEFFFFFFC

// pidNamespace returns the inode of the caller's PID namespace, 0 for the init namespace.
func pidNamespace() (uint32, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return 0, fmt.Errorf("read PID namespace: %w", err)
	}
	if st.Ino == initPIDNamespace {
		return 0, nil
	}
	return uint32(st.Ino), nil
}
