//go:build linux && (amd64 || arm64)

package bench

import (
	"fmt"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// What is compared is two collectors of the same parts but for their receivers, under the
// same conditions: see peer.
const (
	ours = "ours"
	peer = "OTel profiler"

	conditions    = "../../build/peer/run"
	oursCollector = "../../build/peer-ours/otelcol-ours"
	peerCollector = "../../build/peer/otelcol-ebpf-profiler"
)

// rawDir keeps the rounds of benchmarks.
const rawDir = "../../build/bench"

// reportInterval of both. That of full measurements is the default; but the peer's is
// random, by default, within a fifth of that.
var reportInterval = testutil.Size(5*time.Second, time.Second, 5*time.Second)

// profilerConfig takes the receiver's name and configuration.
const profilerConfig = `
receivers:
  %s
exporters: {profiles_file: }
service:
  pipelines: {profiles: {receivers: [%s], exporters: [profiles_file]}}
  telemetry: {metrics: {level: none}, logs: {encoding: json}}
`

// A profiler is a collector whose receiver samples stacks.
type profiler struct {
	command []string
	config  func(hz int) string
	// innerMaps is what the names of its BPF maps within maps begin with.
	innerMaps string
}

func profilers() map[string]*profiler {
	return map[string]*profiler{
		ours: {
			command: []string{conditions, oursCollector},
			config: func(hz int) string {
				receiver := fmt.Sprintf("custom_labels: {samples_per_second: %d, report_interval: %v}", hz, reportInterval)
				return fmt.Sprintf(profilerConfig, receiver, "custom_labels")
			},
			innerMaps: "unwind_table",
		},
		peer: {
			command: []string{conditions, peerCollector},
			config: func(hz int) string {
				receiver := fmt.Sprintf("profiling: {samples_per_second: %d, reporter_interval: %v, reporter_jitter: 0}", hz, reportInterval)
				return fmt.Sprintf(profilerConfig, receiver, "profiling")
			},
			innerMaps: "exe_id_to_",
		},
	}
}

var bothProfilers = []string{ours, peer}
