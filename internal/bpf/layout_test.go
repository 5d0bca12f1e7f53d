//go:build linux && (amd64 || arm64)

package bpf

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
)

// The limits in Go equal those in C.
func TestLimitsEqualHeader(t *testing.T) {
	src, err := os.ReadFile("src/record.h")
	require.NoError(t, err)
	defines := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^#define (\w+)\s+(\d+)`).FindAllStringSubmatch(string(src), -1) {
		defines[m[1]], err = strconv.Atoi(m[2])
		require.NoError(t, err)
	}
	require.Equal(t, map[string]int{
		"MAX_LABEL_SOURCES":       MaxLabelSources,
		"MAX_LABELS":              MaxLabels,
		"MAX_LABEL_SLOTS":         MaxLabelSlots,
		"MAX_LABEL_KEY_BYTES":     MaxLabelKeyBytes,
		"MAX_LABEL_VALUE_BYTES":   MaxLabelValueBytes,
		"MAX_CONTEXT_ATTRS_BYTES": MaxContextAttrsBytes,
		"MAX_LABEL_BYTES":         MaxLabelBytes,
		"MAX_NODEJS_BUCKETS":      maxNodeJSBuckets,
		"MAX_NODEJS_CHAIN":        maxNodeJSChain,
		"MAX_KERNEL_FRAMES":       MaxKernelFrames,
		"MAX_USER_FRAMES":         MaxUserFrames,
		"MAX_UNWIND_TABLES":       MaxUnwindTables,
		"MAX_UNWIND_MAPPINGS":     MaxUnwindMappings,
		"UNWIND_CHUNK_MAPPINGS":   UnwindChunkMappings,
		"UNWIND_BLOCK_BYTES":      UnwindBlockBytes,
		"UNWIND_PAGE_BYTES":       UnwindPageBytes,
		"MAX_FILE_ROWS":           maxFileRows,
		"MAX_FILE_TEXTS":          MaxFileTexts,
		"MAX_PROGRAMS":            maxPrograms,
		"COMM_BYTES":              commBytes,
		"EXEC_PATH_BYTES":         execPathBytes,
	}, defines)
}

// The structs that are read by a cast have the layout that the object's BTF gives.
func TestStructsEqualBTF(t *testing.T) {
	spec, err := loadProfiler()
	require.NoError(t, err)
	switches, err := loadOffcpu()
	require.NoError(t, err)
	var back *btf.Struct
	require.NoError(t, switches.Types.TypeByName("thread_return", &back))
	require.EqualValues(t, back.Size, unsafe.Sizeof(offcpuThreadReturn{}))
	require.EqualValues(t, threadReturnBytes, back.Size)
	for name, size := range map[string]uintptr{
		"sample_header": unsafe.Sizeof(profilerSampleHeader{}),
		"process_event": unsafe.Sizeof(profilerProcessEvent{}),
		"process_entry": unsafe.Sizeof(profilerProcessEntry{}),
		"process_id":    unsafe.Sizeof(profilerProcessId{}),
		"label_source":  unsafe.Sizeof(profilerLabelSource{}),
		"unwind_rule":   unwindRuleBytes,
		"unwind_header": unwindRuleBytes,
		"unwind_chunk":  unsafe.Sizeof(profilerUnwindChunk{}),
		"user_share":    unsafe.Sizeof(profilerUserShare{}),
		"unwind_list":   unsafe.Sizeof(profilerUnwindList{}),
		"file_key":      unsafe.Sizeof(profilerFileKey{}),
		"known_rows":    unsafe.Sizeof(profilerKnownRows{}),
		"named_file":    unsafe.Sizeof(profilerNamedFile{}),
	} {
		var s *btf.Struct
		require.NoError(t, spec.Types.TypeByName(name, &s))
		require.EqualValues(t, s.Size, size, name)
	}
	require.EqualValues(t, sampleHeaderBytes, unsafe.Sizeof(profilerSampleHeader{}))
}

// Every map of the object of switches is its own or the sampler's: one that was
// forgotten would always be empty.
func TestMapsOfSwitches(t *testing.T) {
	spec, err := loadOffcpu()
	require.NoError(t, err)
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	own := []string{offcpuMapAway, offcpuMapCounts, offcpuMapRunning, offcpuMapSamples, offcpuMapScratches, offcpuMapUsers}
	unused := []string{offcpuMapEvents, offcpuMapPrograms}
	for name := range s.sharedMaps() {
		own = append(own, name)
	}
	var all []string
	for name := range spec.Maps {
		if !strings.HasPrefix(name, ".") {
			all = append(all, name)
		}
	}
	require.ElementsMatch(t, all, append(own, unused...))
}

// Package profile knows the states of threads by values of its own.
func TestThreadStatesEqualProfile(t *testing.T) {
	for c, g := range map[offcpuThreadState]profile.ThreadState{
		offcpuThreadStateTHREAD_RUNNING:         profile.ThreadRunning,
		offcpuThreadStateTHREAD_RUNNABLE:        profile.ThreadRunnable,
		offcpuThreadStateTHREAD_SLEEPING:        profile.ThreadSleeping,
		offcpuThreadStateTHREAD_UNINTERRUPTIBLE: profile.ThreadUninterruptible,
		offcpuThreadStateTHREAD_STOPPED:         profile.ThreadStopped,
		offcpuThreadStateTHREAD_OTHER:           profile.ThreadOther,
		offcpuThreadStateTHREAD_STATE_MAX:       profile.NumThreadStates,
	} {
		require.EqualValues(t, c, g)
	}
}

// Package labels knows the enums by values of its own.
func TestEnumsEqualLabels(t *testing.T) {
	for c, g := range map[profilerOutcome]labels.Outcome{
		profilerOutcomeOUTCOME_NONE:              labels.OutcomeNone,
		profilerOutcomeOUTCOME_PRESENT:           labels.OutcomePresent,
		profilerOutcomeOUTCOME_TRUNCATED:         labels.OutcomeTruncated,
		profilerOutcomeOUTCOME_FAULT:             labels.OutcomeFault,
		profilerOutcomeOUTCOME_UPDATING:          labels.OutcomeUpdating,
		profilerOutcomeOUTCOME_INVALID:           labels.OutcomeInvalid,
		profilerOutcomeOUTCOME_NOT_ALLOCATED:     labels.OutcomeNotAllocated,
		profilerOutcomeOUTCOME_STALE_MODULE:      labels.OutcomeStaleModule,
		profilerOutcomeOUTCOME_NO_THREAD_POINTER: labels.OutcomeNoThreadPointer,
		profilerOutcomeOUTCOME_COMPAT:            labels.OutcomeCompat,
		profilerOutcomeOUTCOME_NO_ROWS:           labels.OutcomeNoRows,
		profilerOutcomeOUTCOME_MAX:               labels.NumOutcomes,
	} {
		require.EqualValues(t, c, g)
	}
	for c, g := range map[profilerLabelAbi]labels.ABI{
		profilerLabelAbiLABEL_ABI_NONE:           labels.ABINone,
		profilerLabelAbiLABEL_ABI_V0:             labels.ABIV0,
		profilerLabelAbiLABEL_ABI_V1:             labels.ABIV1,
		profilerLabelAbiLABEL_ABI_THREAD_CONTEXT: labels.ABIThreadContext,
		profilerLabelAbiLABEL_ABI_GO:             labels.ABIGo,
		profilerLabelAbiLABEL_ABI_NODEJS:         labels.ABIThreadContextNodeJS,
	} {
		require.EqualValues(t, c, g)
	}
}
