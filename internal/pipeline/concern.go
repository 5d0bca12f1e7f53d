package pipeline

// Concern is what an error that a pipeline lives on with is about. Each goes wrong whatever is wrong
// beside it, and so do those recover that can; samples and events come again when the receiver is
// started again.
type Concern uint8

// The concerns, the worst first.
const (
	ConcernSamples       Concern = iota // samples cannot be read any more
	ConcernProfiles                     // the next consumer refuses profiles: samples are lost
	ConcernCPUs                         // some CPUs are not sampled
	ConcernProcesses                    // processes that have begun are missing
	ConcernProcessEvents                // new processes are seen late
	ConcernMappingEvents                // libraries that are loaded later are seen late
	ConcernMetrics                      // the next consumer refuses metrics: they come with the next ones

	NumConcerns = iota
)
