// SPDX-License-Identifier: Apache-2.0

// Package command is what the commands of labelprof share: flags and arguments in any order,
// what a wrong one leads to, how much memory they take, and exit codes.
package command
