// Package profile aggregates samples and turns them into pprofile.Profiles. It
// owns the aggregation key and the dictionary tables. It knows no process
// table and resolves no symbols: what it needs of both it asks of a [Resolver].
//
// # Aggregation
//
// Two samples share an entry exactly when process, stack, label set, link, the
// truncation mark of the stack, the thread's state and, where wanted, thread (id
// and name) and CPU are equal. Keys are compared in full, never by
// hash alone and never by concatenation. An entry's samples are its timestamps.
//
// A Builder with as many entries as Options.MaxEntries says gives further ones that have
// labels the overflow set instead, and no link. From twice as many entries on, new ones
// lose their stack, thread and CPU as well: what is left is the process, the thread's
// state, and whether there were labels. No sample is lost.
//
// When what is made of a Builder has as many different frames as Options.MaxFrames says, where one
// that takes more than 512 bytes, or much to look up, by inlined functions or long names, counts for
// several, those of its further stacks that are not known have one location in their place, whose function is
// <too many frames>. Nobody is asked what they are: who makes up return addresses has millions of
// them, of which each takes memory and time that the encoded stack does not. Frames of the kernel
// are no more than its code has. Other Builders keep theirs. In several requests, frames are those that one would have.
//
// # Output
//
// One ResourceProfiles and one Profile for each process: sample type
// samples/count, period type cpu/nanoseconds, timestamps only; of absences from the
// CPU, sample type off_cpu/nanoseconds, no period, a value with each timestamp, and
// the attributes custom_labels.off_cpu.threshold and custom_labels.off_cpu.minimum_ns (unit ns)
// of the profile, which say what was left out. Off-CPU values are divided by the
// threshold, so that a sum does not depend on it: the kernel draws each switch by itself,
// which makes the estimate unbiased whatever the program does. Entries that
// become indistinguishable in the output (the same label from two sources with
// one attribute key, say) are one sample there.
//
// Attributes of a sample, none of which a label can overwrite:
//
//   - thread.id, thread.name and cpu.logical_number, where wanted;
//   - trace_id and span_id, lower-case hex, where wanted and linked, and
//     trace_sampled, true or false, where that is known;
//   - custom_labels.thread_state of an absence: runnable, sleeping, uninterruptible,
//     stopped or other;
//   - custom_labels.truncated = true: something of the label set was cut;
//   - custom_labels.overflow = true: a budget had no room for the labels;
//   - custom_labels.stack_truncated = true: the stack goes on above its last frame.
//
// Labels follow. Attributes of a thread context keep their names, those of the
// other sources get the configured prefix. Then, in this order:
//
//   - bytes of a key that are not UTF-8 are written \xNN; so that no other key
//     is written the same, the backslash of a \x that was there before becomes
//     \x5c;
//   - a name without any character becomes custom_labels.empty_key (an empty
//     key under a prefix is the bare prefix);
//   - a name that equals an attribute of ours, whether it is emitted or not, is
//     replaced by the key under process.context.label.;
//   - of several labels that end up with one name, the thread context's and
//     then the first by key is kept.
//
// With Options.PrometheusNames all names, those of resources included, are such as Prometheus
// takes for labels ([labels.PrometheusName]), and names are one that are equal once dots are
// underscores. A label with the name of an attribute of its process's resource, or of one
// that a processor adds to that, is put under process.context.label., too: a backend that
// keeps both as labels of one series would lose one, or refuse the profile. Nothing of a resource
// stays there.
//
// Values that are not UTF-8 become bytes attributes. In all other strings of the
// output invalid bytes are written \xNN, too: a single one would make a strict
// receiver refuse the whole batch, other processes' samples included.
//
// A sample without any frame gets a stack of one location whose function is
// [unknown], since consumers need at least one. Every location has a profile.frame.type, since some
// consumers refuse a profile for one without.
//
// A [Builder] belongs to one goroutine.
package profile
