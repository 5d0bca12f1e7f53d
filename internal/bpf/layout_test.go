//go:build linux && (amd64 || arm64)

package bpf

import (
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// The limits in Go equal those in C.
func TestLimitsEqualHeader(t *testing.T) {
	defines := map[string]int{}
	for _, header := range []string{"src/record.h", "src/runtime.h"} {
		src, err := os.ReadFile(header)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^#define (\w+)\s+(\d+)`).FindAllStringSubmatch(string(src), -1) {
			defines[m[1]], err = strconv.Atoi(m[2])
			require.NoError(t, err)
		}
	}
	require.Equal(t, map[string]int{
		"MAX_LABEL_END":           record.MaxLabelEnd,
		"MAX_SLOT_END":            record.MaxSlotEnd,
		"MAX_LABEL_SOURCES":       record.MaxLabelSources,
		"MAX_LABELS":              record.MaxLabels,
		"MAX_LABEL_SLOTS":         record.MaxLabelSlots,
		"MAX_LABEL_KEY_BYTES":     record.MaxLabelKeyBytes,
		"MAX_LABEL_VALUE_BYTES":   record.MaxLabelValueBytes,
		"MAX_CONTEXT_ATTRS_BYTES": record.MaxContextAttrsBytes,
		"MAX_LABEL_BYTES":         record.MaxLabelBytes,
		"MAX_NODEJS_BUCKETS":      record.MaxNodeJSBuckets,
		"MAX_NODEJS_CHAIN":        record.MaxNodeJSChain,
		"MAX_KERNEL_FRAMES":       record.MaxKernelFrames,
		"MAX_USER_FRAMES":         record.MaxUserFrames,
		"MAX_UNWIND_TABLES":       record.MaxUnwindTables,
		"MAX_UNWIND_MAPPINGS":     record.MaxUnwindMappings,
		"UNWIND_CHUNK_MAPPINGS":   record.UnwindChunkMappings,
		"UNWIND_BLOCK_BYTES":      record.UnwindBlockBytes,
		"UNWIND_PAGE_BYTES":       record.UnwindPageBytes,
		"MAX_FILE_ROWS":           record.MaxFileRows,
		"MAX_FILE_TEXTS":          record.MaxFileTexts,
		"MAX_PROGRAMS":            record.MaxPrograms,
		"MAX_PLAIN_PROGRAMS":      record.MaxPlainPrograms,
		"MAX_RUNTIMES":            record.MaxRuntimes,
		"MAX_PYTHON_FRAMES":       record.MaxPythonFrames,
		"MAX_PYTHON_EVALUATIONS":  record.MaxPythonEvaluations,
		"MAX_PYTHON_THREADS":      record.MaxPythonThreads,
		"PYTHON_FRAME_BYTES":      record.PythonFrameBytes,
		"PYTHON_THREAD_BYTES":     record.PythonThreadBytes,
		"PYTHON_CODE_BYTES":       record.PythonCodeBytes,
		"PYTHON_NAME_BYTES":       record.PythonNameBytes,
		"MAX_HOTSPOT_HEAPS":       record.MaxHotSpotHeaps,
		"HOTSPOT_BLOB_BYTES":      record.HotSpotBlobBytes,
		"HOTSPOT_CONST_BYTES":     record.HotSpotConstBytes,
		"HOTSPOT_CODE":            record.HotSpotCode,
		"HOTSPOT_METHOD":          record.HotSpotMethod,
		"HOTSPOT_IN_HEAP":         record.HotSpotInHeap,
		"RUNTIME_KIND_SHIFT":      record.RuntimeKindShift,
		"RUNTIME_COOKIE_SHIFT":    record.RuntimeCookieShift,
		"COMM_BYTES":              record.CommBytes,
		"EXEC_PATH_BYTES":         record.ExecPathBytes,
	}, defines)
}

// The structs of package record have the layout that the objects' BTF gives: as many fields
// in the same order, of the same names, places and sizes.
func TestStructsEqualBTF(t *testing.T) {
	profiler, err := loadProfiler()
	require.NoError(t, err)
	switches, err := loadOffcpu()
	require.NoError(t, err)
	for name, twin := range map[string]any{
		"process_id":       record.ProcessID{},
		"file_key":         record.FileKey{},
		"file_text":        record.FileText{},
		"known_rows":       record.KnownRows{},
		"named_file":       record.NamedFile{},
		"go_layout":        record.GoLayout{},
		"label_source":     record.LabelSource{},
		"process_entry":    record.ProcessEntry{},
		"label_sources":    record.LabelSources{},
		"unwind_rule":      record.UnwindRule{},
		"unwind_mapping":   record.UnwindMapping{},
		"unwind_chunk":     record.UnwindChunk{},
		"unwind_chunk_key": record.UnwindChunkKey{},
		"sample_header":    record.SampleHeader{},
		"process_event":    record.ProcessEvent{},
		"python_process":   record.PythonProcess{},
		"hotspot_heap":     record.HotSpotHeap{},
		"hotspot_process":  record.HotSpotProcess{},
		"v8_process":       record.V8Process{},
		"runtime_process":  record.RuntimeProcess{},
	} {
		requireLayout(t, profiler, name, twin)
	}
	requireLayout(t, switches, "thread_return", record.ThreadReturn{})
	for name, size := range map[string]uintptr{
		"sample_header": record.SampleHeaderBytes,
		"unwind_rule":   record.UnwindRuleBytes,
		"unwind_header": record.UnwindRuleBytes,
		"label_block":   record.LabelBlockBytes,
		"raw_label":     record.RawLabelBytes,
		"user_share":    unsafe.Sizeof(profilerUserShare{}),
	} {
		require.EqualValues(t, structOf(t, profiler, name).Size, size, name)
	}
	require.EqualValues(t, structOf(t, switches, "thread_return").Size, record.ThreadReturnBytes)
}

func structOf(t *testing.T, spec *ebpf.CollectionSpec, name string) *btf.Struct {
	t.Helper()
	var s *btf.Struct
	require.NoError(t, spec.Types.TypeByName(name, &s))
	return s
}

func requireLayout(t *testing.T, spec *ebpf.CollectionSpec, name string, twin any) {
	t.Helper()
	s := structOf(t, spec, name)
	typ := reflect.TypeOf(twin)
	require.EqualValues(t, s.Size, typ.Size(), name)
	members := s.Members
	if last, ok := members[len(members)-1].Type.(*btf.Array); ok && last.Nelems == 0 {
		members = members[:len(members)-1] // what follows the struct
	}
	require.Len(t, members, typ.NumField(), name)
	for i, m := range members {
		field := typ.Field(i)
		of := name + "." + m.Name
		require.EqualValues(t, m.Offset.Bytes(), field.Offset, of)
		size, err := btf.Sizeof(m.Type)
		require.NoError(t, err)
		require.EqualValues(t, size, field.Type.Size(), of)
		require.Equal(t, inC(m.Name), strings.ToLower(field.Name), of)
	}
}

// inC is how a field is called in Go, in lower case. Units and the kinds of enums are spelt
// out there, or follow from the type.
func inC(name string) string {
	for short, long := range map[string]string{"changed_s": "changed_sec", "changed_ns": "changed_nsec", "table_id": "table"} {
		if name == short {
			name = long
		}
	}
	return strings.ReplaceAll(name, "_", "")
}

// Every map of the object of switches is its own or the sampler's: one that was
// forgotten would always be empty.
func TestMapsOfSwitches(t *testing.T) {
	spec, err := loadOffcpu()
	require.NoError(t, err)
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	own := []string{offcpuMapOffCpuThreads, offcpuMapCounts, offcpuMapRunning, offcpuMapSamples, offcpuMapScratches, offcpuMapUsers}
	unused := []string{offcpuMapEvents, offcpuMapPrograms}
	for name := range s.objs.ofOffCPU() {
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

// Package record knows the states of threads by values of its own.
func TestThreadStatesEqualRecord(t *testing.T) {
	for c, g := range map[offcpuThreadState]record.ThreadState{
		offcpuThreadStateTHREAD_RUNNING:         record.ThreadRunning,
		offcpuThreadStateTHREAD_RUNNABLE:        record.ThreadRunnable,
		offcpuThreadStateTHREAD_SLEEPING:        record.ThreadSleeping,
		offcpuThreadStateTHREAD_UNINTERRUPTIBLE: record.ThreadUninterruptible,
		offcpuThreadStateTHREAD_STOPPED:         record.ThreadStopped,
		offcpuThreadStateTHREAD_OTHER:           record.ThreadOther,
		offcpuThreadStateTHREAD_STATE_MAX:       record.NumThreadStates,
	} {
		require.EqualValues(t, c, g)
	}
}

// Package record knows the enums by values of its own.
func TestEnumsEqualRecord(t *testing.T) {
	for c, g := range map[profilerOutcome]record.Outcome{
		profilerOutcomeOUTCOME_NONE:              record.OutcomeNone,
		profilerOutcomeOUTCOME_PRESENT:           record.OutcomePresent,
		profilerOutcomeOUTCOME_TRUNCATED:         record.OutcomeTruncated,
		profilerOutcomeOUTCOME_FAULT:             record.OutcomeFault,
		profilerOutcomeOUTCOME_UPDATING:          record.OutcomeUpdating,
		profilerOutcomeOUTCOME_INVALID:           record.OutcomeInvalid,
		profilerOutcomeOUTCOME_NOT_ALLOCATED:     record.OutcomeNotAllocated,
		profilerOutcomeOUTCOME_STALE_MODULE:      record.OutcomeStaleModule,
		profilerOutcomeOUTCOME_NO_THREAD_POINTER: record.OutcomeNoThreadPointer,
		profilerOutcomeOUTCOME_COMPAT:            record.OutcomeCompat,
		profilerOutcomeOUTCOME_NO_ROWS:           record.OutcomeNoRows,
		profilerOutcomeOUTCOME_MAX:               record.NumOutcomes,
	} {
		require.EqualValues(t, c, g)
	}
	for c, g := range map[profilerLabelAbi]record.ABI{
		profilerLabelAbiLABEL_ABI_NONE:           record.ABINone,
		profilerLabelAbiLABEL_ABI_V0:             record.ABIV0,
		profilerLabelAbiLABEL_ABI_V1:             record.ABIV1,
		profilerLabelAbiLABEL_ABI_THREAD_CONTEXT: record.ABIThreadContext,
		profilerLabelAbiLABEL_ABI_GO:             record.ABIGo,
		profilerLabelAbiLABEL_ABI_NODEJS:         record.ABIThreadContextNodeJS,
	} {
		require.EqualValues(t, c, g)
	}
	for c, g := range map[profilerTlsKind]record.TLSKind{
		profilerTlsKindTLS_KIND_STATIC:    record.TLSStatic,
		profilerTlsKindTLS_KIND_DTV_GLIBC: record.TLSDTVGlibc,
		profilerTlsKindTLS_KIND_DTV_MUSL:  record.TLSDTVMusl,
		profilerTlsKindTLS_KIND_REGISTER:  record.TLSRegister,
	} {
		require.EqualValues(t, c, g)
	}
	for c, g := range map[profilerEventKind]record.EventKind{
		profilerEventKindEVENT_EXISTS:        record.EventExists,
		profilerEventKindEVENT_EXEC:          record.EventExec,
		profilerEventKindEVENT_FORK:          record.EventFork,
		profilerEventKindEVENT_EXIT:          record.EventExit,
		profilerEventKindEVENT_CONTEXT_NAMED: record.EventContextNamed,
	} {
		require.EqualValues(t, c, g)
	}
}
