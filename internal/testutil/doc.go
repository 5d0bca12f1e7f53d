// SPDX-License-Identifier: Apache-2.0

// Package testutil holds what tests of several packages need: the writers of
// testdata/writers, built and run, what they themselves say about their labels,
// guards for tests that need BPF, and the statistics that turn counts of samples
// into a verdict.
//
// Nothing outside tests imports it, and it imports nothing of ours: what it says
// about a writer is independent of the code under test.
package testutil
