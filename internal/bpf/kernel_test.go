//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// without returns the features as a kernel shows them that lacks those named.
func without(of []feature, names ...string) []feature {
	of = slices.Clone(of)
	for i := range of {
		lacks := slices.Contains(names, of[i].name)
		of[i].missing = func() bool { return lacks }
	}
	return of
}

var newKernel = kernelTypes{mappingTree: true, switchState: true}

// A kernel that lacks what all programs need is refused, and all that is missing is named.
func TestMissingFeatureIsNamed(t *testing.T) {
	for _, f := range needed(nil) {
		_, err := checkKernel(without(needed(nil), f.name), without(better()), newKernel)
		require.ErrorIs(t, err, ErrUnsupported)
		require.ErrorContains(t, err, "lacks "+f.name+" (Linux "+f.since+")")
		require.NotContains(t, err.Error(), "\n")
	}
	_, err := checkKernel(without(needed(nil), "ring buffers", "BTF tracepoints"), without(better()), newKernel)
	require.ErrorContains(t, err, "lacks BTF tracepoints (Linux 5.5), ring buffers (Linux 5.8)")
}

// One that lacks something else gets the programs for older kernels, and is told what that costs.
func TestOlderObjectsAreChosen(t *testing.T) {
	k, err := checkKernel(without(needed(nil)), without(better()), newKernel)
	require.NoError(t, err)
	require.Equal(t, kernel{mappingTree: true, switchState: true}, k)
	require.Empty(t, k.degradations())
	for _, f := range better() {
		k, err := checkKernel(without(needed(nil)), without(better(), f.name), newKernel)
		require.NoError(t, err)
		require.True(t, k.older, f.name)
		require.False(t, k.mappingTree, f.name)
		told := k.degradations()
		require.Contains(t, told[0], "the kernel lacks "+f.name+" (Linux "+f.since+"): ")
		require.Contains(t, told[1], "frame pointers")
		require.Contains(t, told[0], "is not exact")
	}
}

// A kernel of another version string that has everything but the tree of mappings gets the
// programs for newer ones.
func TestMappingTreeIsMissing(t *testing.T) {
	k, err := checkKernel(without(needed(nil)), without(better()), kernelTypes{switchState: true})
	require.NoError(t, err)
	require.False(t, k.older)
	require.False(t, k.mappingTree)
	require.Len(t, k.degradations(), 1)
	require.False(t, (&Sampler{kernel: k}).CanNameFiles())
}

// This kernel has what is needed, and a sampler does what the probes of the rest say.
func TestProbesOfThisKernel(t *testing.T) {
	testutil.RequireBPF(t)
	k, err := checkSupport(btf.NewCache())
	require.NoError(t, err)
	t.Logf("%+v", k)
	names := lacking(needed(btf.NewCache()))
	require.Empty(t, names)
	names = lacking(better())
	require.Equal(t, names, k.lacks)
	types, err := readKernelTypes(btf.NewCache())
	require.NoError(t, err)
	require.True(t, k.older || types.switchState, "a kernel with all helpers is not older than the argument")
	s := newSampler(t, Config{SamplesPerSecond: 19, RingBufferBytes: MinRingBufferBytes})
	require.Equal(t, s.kernel.mappingTree, s.CanNameFiles())
	require.Equal(t, s.objs.NameFile != nil, !s.kernel.older)
	require.Equal(t, s.kernel.degradations(), s.KernelLacks())
}

// The types of modules, of which a host may have hundreds, are not read: one that is damaged changes nothing.
func TestModulesAreNotRead(t *testing.T) {
	testutil.RequireBPF(t)
	types, err := os.ReadFile(btfPath)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "vmlinux"), types, 0o444))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "module"), []byte("no types"), 0o444))
	out, err := exec.Command("unshare", "--mount", "sh", "-ec", `mount --bind "$1" "$2"; shift 2; exec "$@"`, "sh",
		dir, filepath.Dir(btfPath), os.Args[0], "-test.v", "-test.run=^TestProbesOfThisKernel$").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "--- PASS: TestProbesOfThisKernel")
}

// A program that no kernel takes is refused, and one that all take is not.
func TestRefused(t *testing.T) {
	testutil.RequireBPF(t)
	spec := tracepointProbe()
	require.False(t, refused(spec, nil))
	spec.Instructions = spec.Instructions[1:] // it returns what was never set
	require.True(t, refused(spec, nil))
	for _, other := range []error{unix.EPERM, unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.EINTR, unix.EAGAIN} {
		require.False(t, tells(fmt.Errorf("load: %w", other)), "that is not of the kernel")
	}
}

// The programs that follow processes run with preemption off from their first call to their last, where BPF can do that.
func TestProcessPrograms(t *testing.T) {
	for _, preemptOff := range []bool{false, true} {
		spec, err := (&kernel{preemptOff: preemptOff}).loadProfiler()
		require.NoError(t, err)
		for _, name := range []string{profilerProgProcessFork, profilerProgProcessExec, profilerProgProcessExit} {
			var calls []asm.Instruction
			for _, ins := range spec.Programs[name].Instructions {
				if ins.OpCode.JumpOp() == asm.Call {
					calls = append(calls, ins)
				}
			}
			require.Equal(t, preemptOff, calls[0].IsKfuncCall(), name)
			require.Equal(t, preemptOff, slices.ContainsFunc(calls[1:], func(ins asm.Instruction) bool { return ins.IsKfuncCall() }), name)
			require.NotContains(t, spec.Programs, name+"_atomic")
		}
	}
}

// The objects for newer kernels load where mappings are in no maple tree, as on kernels of
// distributions that have added the rest to older ones; where there are no uprobes; and where what the kernel
// keeps of them has other names.
func TestObjectsWithoutFields(t *testing.T) {
	testutil.RequireBPF(t)
	k, err := checkSupport(btf.NewCache())
	require.NoError(t, err)
	if k.older {
		t.Skip("the objects are not for this kernel")
	}
	kernel, err := btf.LoadKernelSpec()
	require.NoError(t, err)
	for _, field := range [][2]string{
		{"mm_struct", "mm_mt"},
		{"task_struct", "utask"},
		{"uprobe_task", "xol_vaddr"},
		{"uprobe_task", "vaddr"},
		{"uprobe_task", "return_instances"},
		{"return_instance", "stack"},
		{"return_instance", "orig_ret_vaddr"},
		{"return_instance", "next"},
		{"uprobes_state", "xol_area"},
		{"xol_area", "vaddr"},
	} {
		if field[0] != "mm_struct" && field[0] != "task_struct" && testutil.LeftOut(t, "names of what the kernel keeps of uprobes") {
			break // the guards are the same on every kernel, and loading takes long
		}
		types := kernel.Copy()
		var in *btf.Struct
		require.NoError(t, types.TypeByName(field[0], &in))
		require.True(t, renameMember(in.Members, field[1]), "%v", field)
		for _, load := range []func() (*ebpf.CollectionSpec, error){k.loadProfiler, loadOffcpu} {
			spec, err := load()
			require.NoError(t, err)
			coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{KernelTypes: types}})
			require.NoError(t, err, "%v", field)
			coll.Close()
		}
	}
}

func renameMember(members []btf.Member, name string) bool {
	for i, m := range members {
		if m.Name == name {
			members[i].Name = "not_" + name
			return true
		}
		var inner []btf.Member
		switch of := btf.UnderlyingType(m.Type).(type) {
		case *btf.Struct:
			inner = of.Members
		case *btf.Union:
			inner = of.Members
		}
		if m.Name == "" && renameMember(inner, name) {
			return true
		}
	}
	return false
}

// The objects for older kernels do the same on this one, but for what those kernels do not have.
func TestOlderObjects(t *testing.T) {
	testutil.RequireBPF(t)
	if os.Getenv(olderEnv) != "" {
		t.Skip("all tests use them")
	}
	const tests = "^(TestLabelStates|TestLabelsThroughDTV|TestRecordIdentity|TestRows|TestUserStackDepth|" +
		"TestSignalStack|TestUserShare|TestProcessEvents|TestForkInheritsSources|TestSwitchRecords)$"
	cmd := exec.Command(os.Args[0], "-test.run", tests, "-test.v")
	cmd.Env = append(os.Environ(), olderEnv+"=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, strings.Count(tests, "|")+1, strings.Count("\n"+string(out), "\n--- PASS: "), "%s", out)
}
