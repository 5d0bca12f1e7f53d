package customlabelsreceiver

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// observeMetering tells of the metrics, where the receiver makes any.
func (t *telemetry) observeMetering(o metric.Observer, all *snapshot) {
	b, a, s := t.instruments, &t.attrs, &all.metering
	o.ObserveInt64(b.ReceiverCustomLabelsMetricSamples, s.samples, a.receiver)
	o.ObserveInt64(b.ReceiverCustomLabelsMetricSeries, s.series, a.receiver)
	if all.offCPU.enabled {
		o.ObserveInt64(b.ReceiverCustomLabelsOffCPUMetricSwitches, s.switches, a.receiver)
	}
	for r, n := range s.collections {
		o.ObserveInt64(b.ReceiverCustomLabelsMetricCollections, n, a.collections[r])
	}
	if all.users == nil {
		return
	}
	for l := range s.lost {
		all.users.observe(o, b.ReceiverCustomLabelsMetricOverflow, &s.lost[l], a.own, attribute.String("lost", seriesLost(l).String()))
	}
}
