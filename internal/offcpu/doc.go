// Package offcpu joins what is recorded of a thread when it leaves the CPU with
// its return. Between the two it keeps the record, as bytes whose meaning it does
// not know, in bounded memory: when that is full, the user who has most of it gives
// up the thread that left first.
package offcpu
