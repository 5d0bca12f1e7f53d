//go:build linux && (amd64 || arm64)

package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// Where rules hash, the log tells of a salt that is missing or short.
func TestNoteSalt(t *testing.T) {
	hash, drop := labels.Rule{Key: "user.*", Action: labels.Hash}, labels.Rule{Key: "*", Action: labels.Drop}
	for _, c := range []struct {
		rules []labels.Rule
		salt  string
		want  []zapcore.Level
	}{
		{[]labels.Rule{drop}, "", nil},
		{[]labels.Rule{drop, hash}, "", []zapcore.Level{zap.InfoLevel}},
		{[]labels.Rule{hash}, "123456789012345", []zapcore.Level{zap.WarnLevel}},
		{[]labels.Rule{hash}, "1234567890123456", nil},
	} {
		core, said := observer.New(zap.InfoLevel)
		o, _ := testOptions(func(o *Options) { o.Labels.Rules, o.Labels.HashSalt = c.rules, []byte(c.salt) })
		_, err := newRegistry(&o.Labels, zap.New(core))
		require.NoError(t, err)
		var got []zapcore.Level
		for _, entry := range said.All() {
			got = append(got, entry.Level)
		}
		require.Equal(t, c.want, got, c)
	}
}
