//go:build linux && (amd64 || arm64)

package bpf

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// maxVerified is a quarter of what the verifier puts up with. Kernels differ by a
// multiple: what is far from the limit on one may be beyond it on another.
const maxVerified = 250_000

// The programs are far from the verifier's limit on this kernel.
func TestVerifierLimit(t *testing.T) {
	testutil.RequireBPF(t)
	k, err := checkSupport(btf.NewCache())
	require.NoError(t, err)
	objects := []func() (*ebpf.CollectionSpec, error){loadOlder, loadOlderoffcpu}
	if !k.older {
		objects = append(objects, k.loadProfiler, loadOffcpu)
	}
	for _, load := range objects {
		spec, err := load()
		require.NoError(t, err)
		// 0 would make what follows dead code, here and below.
		require.NoError(t, spec.Variables[profilerVarUserLimitBytes].Set(uint64(1)))
		require.NoError(t, spec.Variables[profilerVarSelectTargets].Set(uint32(1)))
		require.NoError(t, spec.Variables[profilerVarPidNsInum].Set(uint32(1)))
		if draw := spec.Variables[offcpuVarDrawBelow]; draw != nil {
			require.NoError(t, draw.Set(uint64(1)))
			require.NoError(t, spec.Variables[offcpuVarLeaveLimitBytes].Set(uint64(1)))
			require.NoError(t, spec.Variables[offcpuVarSwitchTellsState].Set(flag(k.switchState)))
		}
		requireFewInstructions(t, spec)
	}
}

func requireFewInstructions(t *testing.T, spec *ebpf.CollectionSpec) {
	t.Helper()
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{
		Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats},
	})
	require.NoError(t, err)
	defer coll.Close()
	processed := regexp.MustCompile(`processed (\d+) insns`)
	require.NotEmpty(t, coll.Programs)
	for name, p := range coll.Programs {
		m := processed.FindStringSubmatch(p.VerifierLog)
		require.NotNil(t, m, "%s: %s", name, p.VerifierLog)
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		t.Logf("%s: %d instructions verified", name, n)
		require.Less(t, n, maxVerified, name)
	}
}
