package pipeline

// CollectionResult is what became of the metrics of an interval; refused ones come with the next.
type CollectionResult int

// What becomes of them.
const (
	CollectionAccepted CollectionResult = iota // accepted
	CollectionRefused                          // refused

	NumCollectionResults = iota
)

// SeriesLost is what samples lack in the metrics because of MetricOptions.MaxUserSeries, or because
// memory is short: those without labels are in the overflow series of their process, those
// without a process in that of their user.
type SeriesLost int

// What they may lack.
const (
	SeriesLostLabels  SeriesLost = iota // labels
	SeriesLostProcess                   // process

	NumSeriesLost = iota
)

// MeteringSnapshot is about the metrics.
type MeteringSnapshot struct {
	Enabled     bool
	Series      int64
	Lost        [NumSeriesLost]ByUser // samples
	Collections [NumCollectionResults]int64
}
