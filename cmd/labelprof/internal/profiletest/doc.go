// SPDX-License-Identifier: Apache-2.0

// Package profiletest has profiles for tests: batches as a receiver makes them, with known
// labels, stacks and times, and bytes of strangers that stand for much more memory than they
// have.
package profiletest
