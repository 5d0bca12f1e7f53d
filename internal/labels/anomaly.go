package labels

//go:generate stringer -linecomment -output anomaly_string.go -type Anomaly

// Anomaly is something cut, lost or odd in labels that were read.
type Anomaly uint8

// The anomalies.
const (
	// AnomalyCappedValue is a label left out because a [Rule] allows no more values of its key.
	AnomalyCappedValue Anomaly = iota // capped_value
	// AnomalyChangedKey is a thread context key that has changed its name, which is ignored since.
	AnomalyChangedKey // changed_key
	// AnomalyConflict is a label or link that lost against a different one of another source.
	AnomalyConflict // conflict
	// AnomalyDuplicateKey is a label that lost against one of the same key in the same source.
	AnomalyDuplicateKey // duplicate_key
	// AnomalyHalfID is a thread context with one of the two ids zero.
	AnomalyHalfID // half_id
	// AnomalyMalformedID is a label that is to be a trace or span id, and is none.
	AnomalyMalformedID // malformed_id
	// AnomalyNullValue is a label whose value pointer is NULL.
	AnomalyNullValue // null_value
	// AnomalyRenameConflict is a label that a [Rule] has renamed onto another one, which stays.
	AnomalyRenameConflict // rename_conflict
	// AnomalyRenamedKey is a key that is ours or not UTF-8, emitted under another one.
	AnomalyRenamedKey // renamed_key
	// AnomalyTruncatedKey is a key of which only a prefix was copied.
	AnomalyTruncatedKey // truncated_key
	// AnomalyTruncatedSet is a label source of which anything at all was cut.
	AnomalyTruncatedSet // truncated_set
	// AnomalyTruncatedValue is a value of which only a prefix was copied.
	AnomalyTruncatedValue // truncated_value
	// AnomalyUnconfirmedSource is a label set from a presumed source that was not confirmed.
	AnomalyUnconfirmedSource // unconfirmed_source
	// AnomalyUnknownKey is a thread context attribute whose key index has no known name.
	AnomalyUnknownKey // unknown_key

	NumAnomalies = iota
)

// Counts are the anomalies of one label section.
type Counts [NumAnomalies]uint32
