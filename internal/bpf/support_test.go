//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

func TestCheckCapabilities(t *testing.T) {
	bit := func(caps ...int) (set uint64) {
		for _, c := range caps {
			set |= 1 << c
		}
		return set
	}
	for _, tc := range []struct {
		caps     uint64
		paranoid int
		missing  string
	}{
		{bit(unix.CAP_SYS_ADMIN), 3, ""},
		{bit(unix.CAP_BPF, unix.CAP_PERFMON), 0, ""},
		{bit(unix.CAP_BPF, unix.CAP_PERFMON), 3, "CAP_SYS_ADMIN"},
		{bit(unix.CAP_BPF), 0, "capability CAP_PERFMON"},
		{bit(unix.CAP_PERFMON), 0, "capability CAP_BPF"},
		{0, 0, "CAP_BPF and CAP_PERFMON"},
	} {
		err := checkCapabilities(tc.caps, tc.paranoid)
		if tc.missing == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrUnsupported)
		require.ErrorContains(t, err, tc.missing)
	}
}

// What may have refused to load is named where it may be the reason, and only there.
func TestLoadError(t *testing.T) {
	const others = ", though the capabilities are there: they may be those of a user namespace only, or a seccomp profile, SELinux or AppArmor refuses bpf(2)"
	all, one := func() bool { return true }, func() bool { return false }
	refused := fmt.Errorf("create map: %w (MEMLOCK may be too low)", unix.EPERM)
	k := kernel{memlock: errors.New("raise RLIMIT_MEMLOCK: grant CAP_SYS_RESOURCE")}
	require.ErrorIs(t, k.loadErrorIn(refused, "none", all), unix.EPERM)
	require.EqualError(t, k.loadErrorIn(refused, "", all), "operation not permitted: raise RLIMIT_MEMLOCK: grant CAP_SYS_RESOURCE")
	require.Equal(t, unix.EINVAL, k.loadErrorIn(unix.EINVAL, "", all))

	k = kernel{}
	require.EqualError(t, k.loadErrorIn(refused, "integrity", all), "operation not permitted"+others)
	require.EqualError(t, k.loadErrorIn(refused, "integrity", one), "operation not permitted")
	denied := &ebpf.VerifierError{Cause: unix.EACCES, Log: []string{"R0 invalid mem access"}}
	require.ErrorIs(t, k.loadErrorIn(denied, "", all), unix.EACCES)
	require.EqualError(t, k.loadErrorIn(denied, "", all), denied.Error()+others)
	require.Equal(t, denied, k.loadErrorIn(denied, "", one))
	require.EqualError(t, k.loadErrorIn(denied, "confidentiality", one), denied.Error()+
		" (the kernel is locked down: /sys/kernel/security/lockdown says confidentiality, and BPF programs must not read kernel memory)")
}

// Kernels that count maps in RLIMIT_MEMLOCK are told from others, and have it raised where that is allowed, however much
// of it is used up. Where it is not allowed, the reason is named.
func TestMemlock(t *testing.T) {
	testutil.RequireBPF(t)
	before := memlockLimit(t)
	set := func(l unix.Rlimit) { require.NoError(t, unix.Prlimit(0, unix.RLIMIT_MEMLOCK, &l, nil)) }
	t.Cleanup(func() { set(before) })
	set(unix.Rlimit{Max: before.Max})
	_, refused := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	types, err := readKernelTypes(btf.NewCache())
	require.NoError(t, err)
	require.Equal(t, errors.Is(refused, unix.EPERM), types.memlock, "%v", refused)

	k, err := checkSupport(btf.NewCache())
	require.NoError(t, err)
	require.NoError(t, k.memlock)
	if !types.memlock {
		require.Zero(t, memlockLimit(t).Cur, "set for nothing")
	} else {
		require.Equal(t, unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}, memlockLimit(t))
	}

	const hard = 4096
	if types.memlock { // else the test itself may not be able to raise it again
		set(unix.Rlimit{Max: hard})
	}
	most := memlockLimit(t).Max
	withoutCapability(t, unix.CAP_SYS_RESOURCE, func() {
		if err := raiseMemlock(); most != unix.RLIM_INFINITY { // else nothing is raised
			require.ErrorContains(t, err, "grant CAP_SYS_RESOURCE")
		}
		require.Equal(t, unix.Rlimit{Cur: most, Max: most}, memlockLimit(t))
		k, err := checkSupport(btf.NewCache())
		require.NoError(t, err)
		require.Equal(t, types.memlock, k.memlock != nil)
		if types.memlock {
			_, err := New(Config{SamplesPerSecond: 19, RingBufferBytes: MinRingBufferBytes})
			require.ErrorContains(t, err, "grant CAP_SYS_RESOURCE")
		}
	})
}

func memlockLimit(t *testing.T) (l unix.Rlimit) {
	require.NoError(t, unix.Prlimit(0, unix.RLIMIT_MEMLOCK, nil, &l))
	return l
}

// withoutCapability runs f in a thread that lacks a capability.
func withoutCapability(t *testing.T, capability int, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	require.NoError(t, unix.Capget(&header, &sets[0]))
	lower := sets
	lower[capability/32].Effective &^= 1 << (capability % 32)
	require.NoError(t, unix.Capset(&header, &lower[0]))
	defer func() { require.NoError(t, unix.Capset(&header, &sets[0])) }()
	f()
}

// Who may load programs is not told that all are refused.
func TestRefusesAll(t *testing.T) {
	testutil.RequireBPF(t)
	require.False(t, refusesAll())
}

func TestChosen(t *testing.T) {
	require.Equal(t, "integrity", chosen("none [integrity] confidentiality\n"))
	require.Empty(t, chosen("none\n"))
}

func TestDegradations(t *testing.T) {
	const all = 1<<64 - 1
	require.Empty(t, degradations(all, 0, false, 2))
	require.Empty(t, degradations(all&^(1<<unix.CAP_DAC_READ_SEARCH)&^(1<<unix.CAP_CHECKPOINT_RESTORE), 0, false, 2), "others stand in for these")
	require.Len(t, degradations(0, 0, false, 2), 4)
	require.Len(t, degradations(0, 0, true, 2), 4, "there is a reason")
	require.Len(t, degradations(1<<unix.CAP_SYSLOG, 0, false, 2), 3)
	require.Len(t, degradations(all, 1, false, 2), 1)
	refused := degradations(all, 0, true, 2)
	require.Len(t, refused, 1)
	require.Contains(t, refused[0], "AppArmor")
	refused = degradations(all, 0, false, yamaNobody)
	require.Len(t, refused, 1)
	require.Contains(t, refused[0], "ptrace_scope is 3")
}

// One process that may not be read is no sign that others may not.
func TestOthersRefused(t *testing.T) {
	for _, tc := range []struct {
		first, second error
		want          bool
	}{
		{nil, os.ErrNotExist, false},
		{os.ErrPermission, os.ErrNotExist, false},
		{os.ErrPermission, os.ErrPermission, true},
		{os.ErrNotExist, os.ErrPermission, false},
	} {
		require.Equal(t, tc.want, othersRefused(func(path string) (string, error) {
			if path == "/proc/1/exe" {
				return "", tc.first
			}
			return "", tc.second
		}), "%v", tc)
	}
}

// Who does not see the host's processes is told so.
func TestDegradationsOfNamespace(t *testing.T) {
	testutil.RequireBPF(t)
	own, err := pidNamespace()
	require.NoError(t, err)
	for _, run := range [][]string{{}, {"unshare", "--fork", "--pid", "--mount-proc"}} {
		cmd := append(run, os.Args[0], "-test.v", "-test.run=^TestDegradationsHere$")
		out, err := exec.Command(cmd[0], cmd[1:]...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, len(run) > 0 || own != 0, strings.Contains(string(out), "--pid=host"), "%s", out)
	}
}

// TestDegradationsHere is what TestDegradationsOfNamespace runs.
func TestDegradationsHere(t *testing.T) {
	sentences, err := Degradations()
	require.NoError(t, err)
	t.Log(sentences)
}

func TestParseCPUs(t *testing.T) {
	cpus, err := parseCPUs("0-2,5,8-9")
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 2, 5, 8, 9}, cpus)
	for _, bad := range []string{"", "a", "3-1", "0-99999999", "-1", "1-"} {
		_, err := parseCPUs(bad)
		require.Error(t, err, bad)
	}
}

func TestConfigBounds(t *testing.T) {
	good := Config{SamplesPerSecond: 19, RingBufferBytes: 1 << 20}
	require.NoError(t, good.validate())
	for _, change := range []func(*Config){
		func(c *Config) { c.SamplesPerSecond = 0 },
		func(c *Config) { c.SamplesPerSecond = 10_001 },
		func(c *Config) { c.RingBufferBytes = 0 },
		func(c *Config) { c.RingBufferBytes = 1<<20 + 4096 },
		func(c *Config) { c.RingBufferBytes = 1 << 31 },
	} {
		bad := good
		change(&bad)
		require.Error(t, bad.validate())
	}
}

func TestCopyRingWraps(t *testing.T) {
	ring := []byte("01234567")
	dst := make([]byte, 4)
	copyRing(dst, ring, 8*1000+6)
	require.Equal(t, "6701", string(dst))
}

// A limit can be lowered, and only that.
func TestLowered(t *testing.T) {
	require.EqualValues(t, 5, lowered(5, 64))
	require.EqualValues(t, 64, lowered(64, 64))
	require.EqualValues(t, 64, lowered(65, 64))
	require.EqualValues(t, 64, lowered(0, 64))
	require.EqualValues(t, 64, lowered(-1, 64))
}
