package pipeline

// CollectionResult is what became of the metrics of an interval.
type CollectionResult int

// What becomes of them.
const (
	CollectionAccepted CollectionResult = iota
	CollectionRefused                   // they come with the next

	NumCollectionResults = iota
)

func (r CollectionResult) String() string {
	return [NumCollectionResults]string{"accepted", "refused"}[r]
}

// SeriesLost is what samples lack in the metrics because of max_user_series, or because
// memory is short.
type SeriesLost int

// What they may lack.
const (
	SeriesLostLabels  SeriesLost = iota // they are in the overflow series of their process
	SeriesLostProcess                   // they are in the overflow series of their user

	NumSeriesLost = iota
)

func (l SeriesLost) String() string {
	return [NumSeriesLost]string{"labels", "process"}[l]
}

// MeteringSnapshot is about the metrics.
type MeteringSnapshot struct {
	Enabled     bool
	Samples     int64 // in the metrics
	Switches    int64 // likewise, of absences
	Series      int64
	Lost        [NumSeriesLost]ByUser // samples and absences
	Collections [NumCollectionResults]int64
}
