//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
)

// A feature is what some kernels lack. Its release says since when Linux has it, and nothing
// of a distribution's kernel: only a try does.
type feature struct {
	name, since string
	// missing reports whether a try has shown that the kernel lacks it. What cannot be tried
	// is taken for there, and loading tells.
	missing func() bool
}

func (f *feature) String() string { return fmt.Sprintf("%s (Linux %s)", f.name, f.since) }

func unsupported(err error) bool { return errors.Is(err, ebpf.ErrNotSupported) }

func helper(name, since string, fn asm.BuiltinFunc) feature {
	return feature{"the helper " + name, since, func() bool {
		return unsupported(features.HaveProgramHelper(ebpf.PerfEvent, fn))
	}}
}

// needed is what the programs for older kernels use.
func needed(types *btf.Cache) []feature {
	return []feature{
		helper("bpf_probe_read_user", "5.5", asm.FnProbeReadUser),
		{"BTF tracepoints", "5.5", func() bool { return refused(tracepointProbe(), types) }},
		{"ring buffers", "5.8", func() bool { return unsupported(features.HaveMapType(ebpf.RingBuf)) }},
		{"inner maps of any size", "5.10", func() bool { return unsupported(features.HaveMapFlag(features.BPF_F_INNER_MAP)) }},
	}
}

// better is what the others use. Pointers to global functions came with atomic operations that
// have results.
func better() []feature {
	return []feature{
		helper("bpf_get_current_task_btf", "5.11", asm.FnGetCurrentTaskBtf),
		{"atomic operations with results", "5.12", atomicResultMissing},
		{"programs of type syscall", "5.14", func() bool { return unsupported(features.HaveProgramType(ebpf.Syscall)) }},
		helper("bpf_task_pt_regs", "5.15", asm.FnTaskPtRegs),
		helper("bpf_loop", "5.17", asm.FnLoop),
		{"maps that grow in programs of perf events", "6.1", growingMapRefused},
	}
}

// refused reports whether the kernel does not take a program, which may name its types.
func refused(spec *ebpf.ProgramSpec, types *btf.Cache) bool {
	probe, err := ebpf.NewCollectionWithOptions(
		&ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"probe": spec}},
		ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogDisabled: true}, Cache: types},
	)
	if err == nil {
		probe.Close()
		return false
	}
	return tells(err)
}

// tells reports whether an error is the kernel's word on what it lacks, and not on permissions or room.
func tells(err error) bool {
	for _, other := range []error{unix.EPERM, unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.EINTR, unix.EAGAIN} {
		if errors.Is(err, other) {
			return false
		}
	}
	return !errors.Is(err, unix.EACCES) || !refusesAll() // else it is not the verifier's
}

func tracepointProbe() *ebpf.ProgramSpec {
	return &ebpf.ProgramSpec{
		Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: "sched_process_exit", License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	}
}

// atomicResultMissing runs a program that adds 1 to 41 and returns what was there before.
func atomicResultMissing() bool {
	const before = 41
	add := asm.FetchAdd.Mem(asm.RFP, asm.R0, asm.DWord, -8)
	add.Constant = int64(asm.FetchAdd >> 8) // cilium/ebpf v0.22 writes what is here, and else a plain addition
	p, err := ebpf.NewProgramWithOptions(&ebpf.ProgramSpec{
		Type: ebpf.SocketFilter, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R0, before),
			asm.StoreMem(asm.RFP, -8, asm.R0, asm.DWord),
			asm.Mov.Imm(asm.R0, 1),
			add,
			asm.Return(),
		},
	}, ebpf.ProgramOptions{LogDisabled: true})
	if err != nil {
		return tells(err)
	}
	defer p.Close()
	const ethernetHeader = 14 // the least that the kernel takes for a packet
	got, err := p.Run(&ebpf.RunOptions{Data: make([]byte, ethernetHeader)})
	return err == nil && got != before
}

// growingMapRefused tries to have a perf event's program use a hash map without preallocation.
func growingMapRefused() bool {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: 1, Flags: unix.BPF_F_NO_PREALLOC})
	if err != nil {
		return false
	}
	defer m.Close()
	return refused(&ebpf.ProgramSpec{
		Type: ebpf.PerfEvent, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{
			asm.StoreImm(asm.RFP, -4, 0, asm.Word),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, -4),
			asm.LoadMapPtr(asm.R1, m.FD()),
			asm.FnMapLookupElem.Call(),
			asm.Mov.Imm(asm.R0, 0),
			asm.Return(),
		},
	}, nil)
}

// lacking returns those of the features that the kernel lacks.
func lacking(of []feature) (names []string) {
	for i := range of {
		if of[i].missing() {
			names = append(names, of[i].String())
		}
	}
	return names
}

// kernel is what the host's kernel can do.
type kernel struct {
	older       bool     // the objects for older kernels are used
	lacks       []string // for that reason
	mappingTree bool     // BPF finds what a process maps
	switchState bool     // the tracepoint of a switch tells the state of the thread that leaves
	preemptOff  bool     // BPF can keep what runs on its CPU from being preempted
	memlock     error    // why RLIMIT_MEMLOCK, which the kernel looks at, was not raised
}

// checkKernel tries what the kernel can do. The error names all that the programs cannot do without.
func checkKernel(needed, better []feature, types kernelTypes) (kernel, error) {
	if names := lacking(needed); len(names) > 0 {
		return kernel{}, fmt.Errorf("%w: the kernel%s lacks %s", ErrUnsupported, release(), strings.Join(names, ", "))
	}
	k := kernel{switchState: types.switchState, preemptOff: types.preemptOff}
	k.lacks = lacking(better)
	k.older = len(k.lacks) > 0
	k.mappingTree = types.mappingTree && !k.older
	return k, nil
}

// release is in parentheses what uname(2) calls the kernel.
func release() string {
	var uts unix.Utsname
	if unix.Uname(&uts) != nil {
		return ""
	}
	return " (" + unix.ByteSliceToString(uts.Release[:]) + ")"
}

// kernelTypes is what the kernel's BTF says.
type kernelTypes struct {
	mappingTree bool // mm_struct has mm_mt
	switchState bool // the tracepoint sched_switch has prev_state
	preemptOff  bool // there is bpf_preempt_disable (Linux 6.10)
	memlock     bool // RLIMIT_MEMLOCK bounds maps and programs, as before Linux 5.11, which has no bpf_map_memory
}

func readKernelTypes(types *btf.Cache) (kernelTypes, error) {
	spec, err := types.Kernel()
	if err != nil {
		return kernelTypes{}, fmt.Errorf("read the kernel's types: %w", err)
	}
	var mm *btf.Struct
	if err := spec.TypeByName("mm_struct", &mm); err != nil {
		return kernelTypes{}, fmt.Errorf("read the kernel's types: mm_struct: %w", err)
	}
	var preemptDisable *btf.Func
	var mapMemory *btf.Struct
	return kernelTypes{
		mappingTree: hasMember(mm.Members, "mm_mt"),
		switchState: switchTellsState(spec),
		preemptOff:  spec.TypeByName("bpf_preempt_disable", &preemptDisable) == nil,
		memlock:     spec.TypeByName("bpf_map_memory", &mapMemory) == nil,
	}, nil
}

func hasMember(members []btf.Member, name string) bool {
	for _, m := range members {
		if m.Name == name {
			return true
		}
		if inner, ok := btf.UnderlyingType(m.Type).(*btf.Struct); ok && m.Name == "" && hasMember(inner.Members, name) {
			return true
		}
	}
	return false
}

// switchTellsState finds prev_state, which is behind what other kernels have (include/trace/events/sched.h).
func switchTellsState(spec *btf.Spec) bool {
	const params = 5 // and what the tracepoint was registered with
	var name *btf.Typedef
	if spec.TypeByName("btf_trace_sched_switch", &name) != nil {
		return false
	}
	pointer, ok := btf.UnderlyingType(name).(*btf.Pointer)
	if !ok {
		return false
	}
	proto, ok := pointer.Target.(*btf.FuncProto)
	return ok && len(proto.Params) >= params
}

// objects are what is loaded of the sampling object. Those for older kernels cannot name files.
type objects struct {
	olderObjects
	naming
}

type naming struct {
	NameFile *ebpf.Program `ebpf:"name_file"`
	Named    *ebpf.Map     `ebpf:"named"`
}

func (o *objects) Close() error {
	return errors.Join(o.olderObjects.Close(), o.NameFile.Close(), o.Named.Close())
}

// loaded is the part of o that there is.
func (k *kernel) loaded(o *objects) any {
	if k.older {
		return &o.olderObjects
	}
	return o
}

func (k *kernel) loadProfiler() (*ebpf.CollectionSpec, error) {
	if k.older {
		return loadOlder()
	}
	spec, err := loadProfiler()
	if err == nil {
		k.chooseAtomic(spec)
	}
	return spec, err
}

// chooseAtomic leaves those programs of processes that the kernel can run best, under the names of those for all.
func (k *kernel) chooseAtomic(spec *ebpf.CollectionSpec) {
	for name, atomic := range map[string]string{
		profilerProgProcessFork: profilerProgProcessForkAtomic,
		profilerProgProcessExec: profilerProgProcessExecAtomic,
		profilerProgProcessExit: profilerProgProcessExitAtomic,
	} {
		if k.preemptOff {
			spec.Programs[name] = spec.Programs[atomic]
		}
		delete(spec.Programs, atomic)
	}
}

func (k *kernel) loadOffCPU() (*ebpf.CollectionSpec, error) {
	if k.older {
		return loadOlderoffcpu()
	}
	return loadOffcpu()
}

// loadContexts has the program that the kernel can run best under the name of the one for all.
func (k *kernel) loadContexts() (*ebpf.CollectionSpec, error) {
	spec, err := loadContexts()
	if err == nil && k.preemptOff {
		spec.Programs[contextsProgContextNamed] = spec.Programs[contextsProgContextAtomic]
	}
	return spec, err
}

// KernelLacks says in a sentence each what there is not, or not as well, for want of
// something that newer kernels have. It does not change.
func (s *Sampler) KernelLacks() []string { return s.kernel.degradations() }

func (k *kernel) degradations() (sentences []string) {
	if len(k.lacks) > 0 {
		sentences = append(sentences, "the kernel lacks "+strings.Join(k.lacks, ", ")+
			": the programs for older kernels are used, whose maps are smaller and take their memory from the start, which know no functions of Python, Java and JavaScript, and for which a user's share of a ring buffer is not exact")
	}
	if !k.mappingTree {
		sentences = append(sentences, "the kernel does not tell BPF what a process maps (Linux 6.1): stacks of a process that has just begun are walked by frame pointers until it has been looked at")
	}
	return sentences
}

// CanNameFiles reports whether NameFile can tell anything on this kernel.
func (s *Sampler) CanNameFiles() bool { return s.kernel.mappingTree }
