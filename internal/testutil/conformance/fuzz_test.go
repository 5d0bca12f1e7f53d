package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Whatever arrives, the checker reports it and does not panic.
func FuzzCheck(f *testing.F) {
	wire, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(valid())
	require.NoError(f, err)
	f.Add(wire)
	f.Add([]byte(nil))
	f.Fuzz(func(_ *testing.T, wire []byte) {
		p, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(wire)
		if err == nil {
			Check(p)
		}
	})
}
