//go:build linux && amd64

package e2e

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

var v8HostileSamples = size(20_000, 1_000, 300)

// v8Exports returns the ints that tell of its V8 in a Node.js.
func v8Exports(t *testing.T, node string) map[string]int32 {
	t.Helper()
	f, err := elf.Open(node)
	require.NoError(t, err)
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	require.NoError(t, err)
	ints := map[string]int32{}
	for _, s := range symbols {
		if !strings.HasPrefix(s.Name, "v8dbg_") && !strings.HasSuffix(s.Name, "Version6major_E") && !strings.HasSuffix(s.Name, "Version6minor_E") {
			continue
		}
		ints[s.Name] = 0
		section := f.Sections[s.Section]
		if section.Type == elf.SHT_NOBITS {
			continue
		}
		var b [4]byte
		_, err := section.ReadAt(b[:], int64(s.Value-section.Addr))
		require.NoError(t, err)
		ints[s.Name] = int32(binary.LittleEndian.Uint32(b[:]))
	}
	return ints
}

// TestRuntimesV8Hostile: beside a program that claims to be a V8 and has nonsense in its place, the
// stacks of a real one are what they are otherwise; the nonsense is counted.
func TestRuntimesV8Hostile(t *testing.T) {
	node, err := filepath.Abs(filepath.Join(nodeBuild, "node_modules", "node24", "bin", "node"))
	require.NoError(t, err)
	ints := v8Exports(t, node)
	var exports strings.Builder
	for name, v := range ints {
		fmt.Fprintf(&exports, "int %s = %d;\n", name, v)
	}
	dir := t.TempDir()
	program, symbols := filepath.Join(dir, "hostilev8"), filepath.Join(dir, "symbols.c")
	require.NoError(t, os.WriteFile(symbols, []byte(exports.String()), 0o600))
	text, err := exec.Command("cc", "-O2", "-rdynamic", "-o", program, "../../testdata/runtimes/hostilev8.c", symbols).CombinedOutput()
	require.NoError(t, err, "%s", text)
	var args []string
	for _, name := range []string{
		"JSFunction__JS_FUNCTION", "SharedFunctionInfo__SHARED_FUNCTION_INFO", "Script__SCRIPT", "ScopeInfo__SCOPE_INFO",
		"BytecodeArray__BYTECODE_ARRAY", "Code__CODE", "InstructionStream__INSTRUCTION_STREAM", "ByteArray__BYTE_ARRAY",
		"ProtectedFixedArray__PROTECTED_FIXED_ARRAY", "SharedFunctionInfoWrapper__SHARED_FUNCTION_INFO_WRAPPER",
		"SeqOneByteString__SEQ_ONE_BYTE_STRING", "ThinString__THIN_ONE_BYTE_STRING", "ConsString__CONS_ONE_BYTE_STRING",
		"ExternalOneByteString__EXTERNAL_ONE_BYTE_STRING", "TrustedWeakFixedArray__TRUSTED_WEAK_FIXED_ARRAY",
	} {
		args = append(args, strconv.Itoa(int(ints["v8dbg_type_"+name+"_TYPE"])))
	}
	hostile := testutil.StartPath(t, program, args...)
	lowerPriority(t, hostile.PID)
	n, r := sampleV8(t, node, v8HostileSamples)
	results := r.metric("runtime_results", "result")
	t.Logf("%v", results)
	require.Zero(t, n.wrong)
	require.GreaterOrEqual(t, float64(n.whole), v8MinWhole*float64(n.all-n.idle))
	require.Greater(t, results["stack_invalid"], int64(v8HostileSamples/10))
}
