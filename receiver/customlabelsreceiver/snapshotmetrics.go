package customlabelsreceiver

// collectionResult is what became of the metrics of an interval.
type collectionResult int

const (
	collectionAccepted collectionResult = iota
	collectionRefused                   // they come with the next

	numCollectionResults = iota
)

func (r collectionResult) String() string {
	return [numCollectionResults]string{"accepted", "refused"}[r]
}

// seriesLost is what samples lack in the metrics because of max_user_series, or because
// memory is short.
type seriesLost int

const (
	seriesLostLabels  seriesLost = iota // they are in the overflow series of their process
	seriesLostProcess                   // they are in the overflow series of their user

	numSeriesLost = iota
)

func (l seriesLost) String() string {
	return [numSeriesLost]string{"labels", "process"}[l]
}

// meteringSnapshot is about the metrics.
type meteringSnapshot struct {
	enabled     bool
	samples     int64 // in the metrics
	switches    int64 // likewise, of absences
	series      int64
	lost        [numSeriesLost]byUser // samples and absences
	collections [numCollectionResults]int64
}
