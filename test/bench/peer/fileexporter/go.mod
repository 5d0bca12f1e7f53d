module github.com/customlabels/otelcol-customlabels/test/bench/peer/fileexporter

go 1.26.0

require (
	go.opentelemetry.io/collector/component v1.70.0
	go.opentelemetry.io/collector/consumer v1.70.0
	go.opentelemetry.io/collector/exporter v1.70.0
	go.opentelemetry.io/collector/exporter/xexporter v0.164.0
	go.opentelemetry.io/collector/pdata/pprofile v0.164.0
)
