//go:build linux && (amd64 || arm64)

package bpf

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// What is known of a process's language runtime is sealed: for each kind the struct of that kind, and
// no other.
func TestSealOfEachRuntime(t *testing.T) {
	id := record.ProcessID{TGID: 1}
	sealed := map[string]record.RuntimeKind{}
	for kind := record.RuntimeNone + 1; kind < record.NumRuntimes; kind++ {
		before := record.RuntimeProcess{Kind: kind}
		sealRuntime(&id, &before)
		of := 0
		for _, field := range reflect.VisibleFields(reflect.TypeFor[record.RuntimeProcess]()) {
			if field.Type.Kind() != reflect.Struct {
				continue
			}
			changed := record.RuntimeProcess{Kind: kind}
			first := reflect.ValueOf(&changed).Elem().FieldByIndex(field.Index).Field(0)
			first.SetUint(1)
			if sealRuntime(&id, &changed); changed.Seal != before.Seal {
				sealed[field.Name] = kind
				of++
			}
		}
		require.Equal(t, 1, of, "structs in the seal of %v", kind)
	}
	require.Len(t, sealed, record.NumRuntimes-1, "each kind has its own")
}
