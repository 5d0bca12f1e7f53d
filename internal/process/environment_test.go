//go:build linux

package process

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// What the resource in an environment lacks is counted as that of a process context is, and logged, once for a process.
func TestEnvironmentLeftOut(t *testing.T) {
	many := make([]string, 130)
	for i := range many {
		many[i] = fmt.Sprintf("k%d=v", i)
	}
	padding := "X=" + strings.Repeat("x", maxEnvironmentBytes) + "\x00"
	for name, c := range map[string]struct {
		environ    string
		attributes int
		errors     uint64
	}{
		"whole":            {"OTEL_SERVICE_NAME=shop\x00OTEL_RESOURCE_ATTRIBUTES=a=b\x00", 2, 0},
		"none":             {"X=y\x00", 0, 0},
		"many":             {"OTEL_RESOURCE_ATTRIBUTES=" + strings.Join(many, ",") + "\x00", 127, 3},
		"malformed":        {"OTEL_RESOURCE_ATTRIBUTES=a=b,c\x00", 0, 2},
		"behind the limit": {padding + "OTEL_SERVICE_NAME=shop\x00", 0, 1},
		"limit behind it":  {"OTEL_SERVICE_NAME=shop\x00OTEL_RESOURCE_ATTRIBUTES=a=b\x00" + padding, 2, 0},
		"one before, cut":  {"OTEL_SERVICE_NAME=shop\x00" + padding, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			core, logs := observer.New(zap.InfoLevel)
			f := newFake(t, func(o *Options) { o.Environment, o.Logger = true, zap.New(core) })
			f.image(42, 500, "/bin/one")
			f.write(42, "environ", c.environ)
			f.Lookup(record.ProcessID{TGID: 42, StartNs: 5e9}, 42, nobody, nil)
			f.work()
			require.Len(t, f.process(record.ProcessID{TGID: 42, StartNs: 5e9}).Info().Environment, c.attributes)
			for range 2 {
				require.Equal(t, c.errors, f.Stats().ContextErrors)
				require.Equal(t, min(int(c.errors), 1), logs.FilterMessageSnippet("environment").Len())
				f.advance(int64(time.Minute))
				f.jobs.schedule(f.process(record.ProcessID{TGID: 42, StartNs: 5e9}), workLoad, urgent)
				require.NotZero(t, f.work())
			}
		})
	}
}
