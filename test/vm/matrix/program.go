//go:build linux

package main

import (
	"fmt"
	"strings"
	"time"
)

// programTimeout is shorter than cellTimeout: then the program itself says where it waits.
const programTimeout = 45 * time.Minute

// A program is a test binary of build/vm/ARCH and the tests of it that a guest runs.
type program struct {
	name   string // for messages
	binary string
	env    []string
	tests  []string
	labels bool // it makes label assertions
}

// programs that run in each guest, in one boot.
func programs(c *cell) []program {
	if c.quick {
		return []program{{
			name: "bpf", binary: "bpf.test", labels: true,
			env:   []string{"CUSTOM_LABELS_BPF_TARGET=/guest/target", "CUSTOM_LABELS_WRITERS=/guest/writers-glibc"},
			tests: []string{"TestLabelStates", "TestLabelsThroughDTV", "TestRecordIdentity", "TestVerifierLimit"},
		}}
	}
	if c.mayCome != 0 {
		return []program{{
			name: "bpf", binary: "bpf.test", labels: true,
			env:   []string{"CUSTOM_LABELS_BPF_TARGET=/guest/target", "CUSTOM_LABELS_WRITERS=/guest/writers-glibc"},
			tests: []string{"TestLabelStates", "TestRoomForCPUs", "TestCPUHotplug", "TestMapBytesLimit", "TestMapBytesEstimate", "TestMapBytesOfElements"},
		}, {
			name: "glibc", binary: "e2e.test", env: []string{"CUSTOM_LABELS_WRITERS=/guest/writers-glibc"}, labels: true,
			tests: []string{"TestInstant", "TestAccounting"},
		}}
	}
	receiver := []string{"TestInstant", "TestFidelity", "TestAccounting", "TestNoPrivileges", "TestKernelLacks"}
	if c.thorough {
		receiver = append(receiver, "TestRestart")
	}
	kernel := []string{
		"TestLabelStates", "TestLabelsThroughDTV", "TestThreadPointerNotKnownYet", "TestThreadPointerOfProgramBefore",
		"TestKernelMadeWorkerHasNoLabels", "TestRecordIdentity", "TestSampleOfExec", "TestUserStackDepth", "TestKernelStack", "TestRows", "TestHostileStacks", "TestReturnToNoAddress", "TestReturnProbes", "TestReturnProbeWithoutRows", "TestProbedInstruction", "TestLeafAtTheBeginning", "TestKeeperOfFramePointers", "TestNewTaskStacks",
		"TestProcessEvents", "TestStartStack", "TestForkInheritsSources", "TestMappingEvents", "TestMappingFileTimes", "TestCPUHotplug", "TestStructsEqualBTF",
		"TestVerifierLimit", "TestContextEvents",
		"TestDTVStates", "TestRecordThread", "TestThreadsAreNoProcesses", "TestEndingThreads", "TestSourcesShareSection",
		"TestLabelPadding", "TestSignalStack", "TestSignalStackWithoutRows", "TestRowBounds", "TestReusedTableSlot",
		"TestProbesOfThisKernel", "TestMemlock", "TestPreemptedPrograms",
	}
	if !c.older {
		kernel = append(kernel, "TestObjectsWithoutFields", "TestTextsOfFile", "TestNameFile", "TestLostList", "TestHostileHotSpot",
			"TestV8CodeReplaced", "TestV8BaselineCode", "TestV8InterpreterCopied", "TestV8CodeCallsItself", "TestV8CodeFar",
			"TestV8Processes", "TestV8StackEdge", "TestV8NoSource")
	}
	if c.arch == "amd64" {
		kernel = append(kernel, "TestSignalRegisters") // rules refer to other registers there only
	} else {
		kernel = append(kernel, "TestAddressMask", "TestSignedReturnAddresses")
	}
	// To trace switches, the kernel changes an instruction of its scheduler. On x86-64 it
	// does so by way of a breakpoint, which one emulated CPU may still run into when the
	// other has removed it: a guest panics now and then. Loading is tested all the same.
	if c.arch != "amd64" {
		kernel = append(kernel, "TestSwitchRecords", "TestSwitchThreadPointerOfProgramBefore", "TestLeafBehindSystemCall", "TestSwitchRingFull", "TestNewTaskSwitches", "TestSwitchThreads")
		if c.thorough {
			receiver = append(receiver, "TestOffCPU")
		}
	}
	all := []program{
		{
			name: "bpf", binary: "bpf.test", labels: true,
			env: []string{
				"CUSTOM_LABELS_BPF_TARGET=/guest/target", "CUSTOM_LABELS_BPF_STACKS=/guest/stacks",
				"CUSTOM_LABELS_BPF_HOTSPOT=/guest/hotspot", "CUSTOM_LABELS_BPF_V8=/guest/v8",
				"CUSTOM_LABELS_CONTEXT_EVENTS=" + contextEvents(c), "CUSTOM_LABELS_WRITERS=/guest/writers-glibc",
			},
			tests: kernel,
		},
		{
			name: "glibc", binary: "e2e.test", labels: true,
			env: []string{
				"CUSTOM_LABELS_WRITERS=/guest/writers-glibc", "CUSTOM_LABELS_OLDER_KERNEL=" + oneIf(c.older),
				"CUSTOM_LABELS_CONTEXT_EVENTS=" + contextEvents(c),
			},
			tests: receiver,
		},
		{
			name: "musl", binary: "e2e.test", env: []string{"CUSTOM_LABELS_WRITERS=/guest/writers-musl"}, labels: true,
			tests: []string{"TestInstant", "TestFidelity"},
		},
		{
			name: "Go", binary: "e2e.test", env: []string{"CUSTOM_LABELS_GO_WRITERS=/guest/gowriters"}, labels: true,
			tests: []string{"TestGoLabels"},
		},
	}
	if c.stacks {
		java := fmt.Sprintf("/guest/java%d", c.java)
		if c.variant == "pac" {
			java += " -XX:UseBranchProtection=standard" // of Java's own frames too
		}
		all = append(all, program{
			name: "stacks", binary: "e2e.test", env: []string{"CUSTOM_LABELS_UNWIND=/guest/unwind"},
			tests: []string{"TestUnwind"},
		}, program{
			name: "Node.js", binary: "e2e.test", env: []string{"NODES=/guest/nodes/node24"},
			tests: []string{"TestRuntimesV8"},
		}, program{
			name: "Java", binary: "e2e.test",
			env:   []string{"CUSTOM_LABELS_JAVA_CHAINS=/guest/chains", "JAVAS=" + java},
			tests: []string{"TestRuntimesHotSpot"},
		}, program{
			name: "Python", binary: "e2e.test", // it finds the guest's
			tests: []string{"TestRuntimesPython"},
		})
	}
	if c.nobody {
		all = append(all, program{
			name: "nobody", binary: "e2e.test", env: []string{"CUSTOM_LABELS_WRITERS=/guest/writers-glibc"},
			tests: []string{"TestPrivileges"},
		})
	}
	return all
}

// contextEvents tells the test whether the kernel lets functions be traced by BPF: "1" or
// "0". On aarch64 that came with Linux 6.4.
func contextEvents(c *cell) string {
	return oneIf(c.arch != "arm64" || c.kernel != "5.10" && c.kernel != "6.1")
}

func oneIf(yes bool) string {
	if yes {
		return "1"
	}
	return "0"
}

// words of the program on vmrun's command line.
func (p *program) words(dir string) []string {
	words := append([]string{}, p.env...)
	return append(words, dir+"/"+p.binary, "-test.v", "-test.timeout", programTimeout.String(), "-test.run", fmt.Sprintf("^(%s)$", strings.Join(p.tests, "|")))
}
