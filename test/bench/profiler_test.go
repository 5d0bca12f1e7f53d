//go:build linux && (amd64 || arm64)

package bench

import "fmt"

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

// profilerConfig takes the receiver's name and configuration. Both report every 5 s: the
// peer, by default, at random times about that.
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
}

func profilers() map[string]*profiler {
	return map[string]*profiler{
		ours: {
			command: []string{conditions, oursCollector},
			config: func(hz int) string {
				return fmt.Sprintf(profilerConfig, fmt.Sprintf("custom_labels: {samples_per_second: %d}", hz), "custom_labels")
			},
		},
		peer: {
			command: []string{conditions, peerCollector},
			config: func(hz int) string {
				return fmt.Sprintf(profilerConfig, fmt.Sprintf("profiling: {samples_per_second: %d, reporter_jitter: 0}", hz), "profiling")
			},
		},
	}
}

var bothProfilers = []string{ours, peer}
