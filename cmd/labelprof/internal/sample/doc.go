// SPDX-License-Identifier: Apache-2.0

// Package sample is what all formats of profiles are read into, and what tables, pprof files
// and the page are made from: one sample of an on-CPU or off-CPU profile with everything
// that it refers to looked up.
//
// It knows no format. Bounds on what a sample may refer to, on its time and on its texts are
// here, because readers of every format hold them; so what comes out of a reader can be
// summed and kept without another look. Texts are any bytes that programs publish.
package sample
