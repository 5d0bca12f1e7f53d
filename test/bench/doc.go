// Package bench measures what the receiver costs, on the running kernel and
// with real writers: the BPF programs a sample (TestBenchRecord), the receiver
// in a collector (TestBenchFootprint, TestBenchStartup), the first look at processes
// (TestBenchAttach; package executable has TestBenchPlan, for one executable); and beside
// another profiler, samples of deep stacks (TestBenchUnwind), of languages with a runtime
// (TestBenchRuntimes), and processes that come and go (TestBenchChurn).
//
// Each test prints its figures, and last what they say of its goals. Times are the
// machine's, and a goal for one is judged by package paired: from many rounds, with an
// interval. What is exact is asserted: reads that must not happen, memory, losses.
//
// Without CUSTOM_LABELS_FULL=1 each takes its quick form, which is there to see that it
// runs: a round or two, no verdict, and no assertion that a busy machine could disturb.
//
// They need root.
package bench
