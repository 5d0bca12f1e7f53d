// Package bench measures what the receiver costs, on the running kernel and
// with real writers: the BPF programs a sample (TestBenchRecord), the receiver
// in a collector (TestBenchFootprint), the first look at processes
// (TestBenchAttach; package process has TestBenchPlan, for one executable), and
// samples of deep stacks beside another profiler (TestBenchUnwind).
//
// Each test prints its figures. Times are never a reason to fail, as they are
// the machine's; what is exact is: reads that must not happen, memory, losses.
// They need root.
package bench
