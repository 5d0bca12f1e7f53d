//go:build linux

// Command matrix runs the tests of labels in virtual machines, one for each cell of
// kernel and architecture, one after the other, and prints how many label assertions
// each has made:
//
//	matrix [-list] [CELL]...
//
// A cell is named like arm64-6.12; none means all. It builds what the guests run
// (test/vm/Makefile), fetches their kernels (fetch.sh) and boots them (run.sh), from
// the root of the repository. The output of a cell is in build/vm/logs, and is shown
// when the cell fails.
//
// Guests are slow, as they are always emulated, and their host may withhold CPU from them:
// what they assert is each sample against what was published at its instant, not shares of
// CPU time, which only hold where the clock's ticks are not lost.
//
// A cell fails when its guest does not boot, when a test fails, skips or is missing,
// when a program has made no label assertion, and when the guest is not what the cell
// is for: another architecture's pages, no pointer authentication.
package main
