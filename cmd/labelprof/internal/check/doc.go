// SPDX-License-Identifier: Apache-2.0

// Package check is the command that judges programs that publish labels: it runs or watches one
// for some seconds and says rule by rule which holds, which is broken and which could not be
// seen, with the place in the specification, what was seen and what to do. What the rules are
// and how they are judged is in package writercheck. Of a command, all processes that publish are
// watched, and the worst one is the one that is reported.
//
// It is for the continuous integration of those who write publishers: exit codes, JSON and a
// summary in Markdown. All that comes from a process is escaped.
package check
