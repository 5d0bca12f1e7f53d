//go:build linux && (amd64 || arm64)

package e2e

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// v8Node is the Node.js whose version of V8 hostile programs claim to be.
func v8Node(t *testing.T) string {
	t.Helper()
	node, err := filepath.Abs(filepath.Join(nodeBuild, "node_modules", "node24", "bin", "node"))
	require.NoError(t, err)
	return node
}

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

// compileHostileV8 builds a file of testdata/runtimes with the symbols of a Node.js, and returns its arguments.
func compileHostileV8(t *testing.T, node, source string) (program string, args []string) {
	t.Helper()
	ints := v8Exports(t, node)
	var exports strings.Builder
	for name, v := range ints {
		fmt.Fprintf(&exports, "int %s = %d;\n", name, v)
	}
	symbols := filepath.Join(t.TempDir(), "symbols.c")
	require.NoError(t, os.WriteFile(symbols, []byte(exports.String()), 0o600))
	for _, name := range []string{
		"JSFunction__JS_FUNCTION", "SharedFunctionInfo__SHARED_FUNCTION_INFO", "Script__SCRIPT", "ScopeInfo__SCOPE_INFO",
		"BytecodeArray__BYTECODE_ARRAY", "Code__CODE", "InstructionStream__INSTRUCTION_STREAM", "ByteArray__BYTE_ARRAY",
		"ProtectedFixedArray__PROTECTED_FIXED_ARRAY", "SharedFunctionInfoWrapper__SHARED_FUNCTION_INFO_WRAPPER",
		"SeqOneByteString__SEQ_ONE_BYTE_STRING", "ThinString__THIN_ONE_BYTE_STRING", "ConsString__CONS_ONE_BYTE_STRING",
		"ExternalOneByteString__EXTERNAL_ONE_BYTE_STRING", "TrustedWeakFixedArray__TRUSTED_WEAK_FIXED_ARRAY",
	} {
		args = append(args, strconv.Itoa(int(ints["v8dbg_type_"+name+"_TYPE"])))
	}
	return compileProgram(t, filepath.Join("../../testdata/runtimes", source), "-rdynamic", symbols), args
}
