// Package elffile reads what a profiler needs from an ELF file that it does
// not trust: program headers, the dynamic section, symbols by name through the
// hash tables, relocations, function symbols and build ids.
//
// It differs from debug/elf in what it reads and in what it believes. Opening
// a file reads the file header and the program headers, nothing more; each
// question after that reads only what answers it, in pieces of at most
// batchBytes. Section headers are needed for .symtab alone, so a file without
// them works. Every count and length that a file states is held against a
// named bound and against the size of the file, so that a hostile file costs
// at most a bounded number of reads and yields an error.
//
// Only 64-bit little-endian executables and shared objects for x86-64 and
// aarch64 are supported.
//
// The package does not map files, resolve symbol versions across objects, or
// cache anything beyond the life of a File.
//
// # Variables in .symtab
//
// .symtab is read once, as a whole, for thread-local variables and data of the size of an
// int: a file's hidden variables, and all of a static executable's, are nowhere else.
// Searching the string table for names first reads more, and reads twice.
package elffile
