// Package cputime adds up CPU time, and time off the CPU, by process and by the values of
// some label keys: the metrics that go with the profiles. It is given what a batch of
// profiles was given ([profile.Builder.Totals]), so that both say the same: each sample
// is in exactly one series, and the resource and the verdict about a process are the same
// for both signals. It is given a batch when profiles are made of it, or where it is dropped.
//
// # Metrics
//
//   - custom_labels.cpu.time: seconds on the CPU; a sample counts the sampling period;
//   - custom_labels.off_cpu.time: seconds off the CPU, by custom_labels.thread_state; a
//     sample counts its own value.
//
// Both are monotonic cumulative sums. One ResourceMetrics is a process and the user whose
// samples they are (process.real_user.id): equal resources are one, as backends take them.
// A point has an attribute for each of Options.LabelKeys that the samples' label sets have,
// whatever published it; a label without any text is none, since some backends cannot tell
// the two apart. Values that are not UTF-8 are written \xNN ([labels.Escape]).
// custom_labels.truncated = true is there where anything of the set was cut,
// custom_labels.overflow = true where a budget had no room for the labels.
//
// # Bounds
//
// Each user has Options.MaxSeries series and Options.MaxBytes. Beyond that, samples with
// labels count in one series of their process that has custom_labels.overflow; from twice
// as much on, what has no series yet counts in one of the user, whose resource has only
// process.real_user.id. Before labels of a user who has all his series are given up, those of his series go that
// are quiet: that have had no sample for Options.Expiry and were accepted, though their process lives; this is tried once
// between two collections. Where memory is short (Options.Excess), quiet series of all users go with a collection, first
// those of who has most. Users beyond Options.MaxUsers share what one has, and their common resource is empty; one of
// them takes the place of a user of whom all series are quiet, with what was his own already. So a user can use up nobody
// else's series, and no sample is lost.
//
// # Time
//
// A series starts with the batch of its first sample. It stays as long as its process
// lives, if there is room (see above). When that has ended, it is emitted unchanged for
// Options.Expiry after its last sample, and until that was accepted once; then it goes. When its process
// lives on with another resource, it goes once its last sample was accepted: of the two resources a backend
// may keep what they have in common, and have both sums in one series, back and forth. For
// the one collection that both can be in, resources come in the order in which they began. While there is room it does
// not go because it is quiet: a rare tenant would begin at 0 each time, which a rate does not
// see. What has been let go begins later than it ended. Should
// equal attributes come again, the new series starts no earlier than the old one has gone:
// cumulative sums never go back under one start.
//
// A [Sums] may be used from everywhere.
package cputime
