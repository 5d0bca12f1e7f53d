// SPDX-License-Identifier: Apache-2.0

// Package sink takes batches of profiles, from files or from the network, and hands their
// samples to all that want them: the table, the pprof file, the store behind the page; and
// keeps the batches themselves in a file.
//
// Nothing is lost silently: what was malformed, of another type, or had no room is counted and
// told. A file of batches ends at the first write that fails, with the last batch that is whole:
// behind one that is cut, its readers could not find where the next one begins.
package sink
