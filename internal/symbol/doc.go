// Package symbol turns addresses into functions: virtual addresses of ELF files
// by their symbol tables ([Cache], [Table]), and kernel addresses by
// /proc/kallsyms ([Kernel]).
//
// An address of a process is not what a file's symbols are about: the caller
// converts it to a virtual address of the file (process.ExecMapping.Vaddr).
//
// Files come from processes that are not trusted. What is kept of one file, and
// of all, is bounded in bytes; names are cut; reading a file takes place in a
// goroutine of its own, so that one that never ends costs a bounded wait and
// not the caller. An address without a symbol yields nothing, never the name of
// a function nearby.
//
// The package knows no processes and no profiles, and caches no lookups by
// address.
package symbol
