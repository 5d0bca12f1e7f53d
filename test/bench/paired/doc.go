// Package paired decides by measurements that noise disturbs: whether a figure is at
// most a goal.
//
// Subjects are measured in rounds, back to back or at once, and in random order, so that
// what else the machine does meets all of them. What is compared is the ratio of each round. Of
// the ratios the median counts, with an interval that holds the true median with a
// probability of 95 % or more, whatever their distribution is: it lies between two of
// the sorted values, chosen by the binomial distribution. Fewer than six values have no
// such interval, and no verdict.
//
// A claim is met when its whole interval is at or below the goal, and missed when the
// whole interval lies above it: only that fails a test. In between it is not decided.
//
// All rounds are kept, with what they were measured on, in a file of JSON lines.
package paired
