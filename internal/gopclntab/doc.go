// Package gopclntab reads the table in which a Go program has its functions, lines,
// inlined calls and frame sizes for its own use: pclntab. It is in every executable,
// stripped ones included.
//
// [Find] locates it in an ELF file and yields a [Table], a value without references.
// A [Reader] reads through it: functions by address ([Reader.Func]), the functions
// that an address stands for, inlined ones first ([Reader.Frames]), all functions
// ([Reader.Functions]), and how far the stack pointer is below a function's frame
// ([Reader.StackDeltas]).
//
// The table is tens of megabytes in large programs, of which a batch of samples needs some
// pages. It stays in the file: a Reader reads pages of it as they are needed and keeps a
// bounded number of them; it never reads it as a whole. Package symbol keeps what was
// found, by address.
//
// The format is that of Go 1.18 and 1.20, which is still current. It has no
// specification; what this package relies on is in Go's own source, runtime/symtab.go,
// runtime/symtabinl.go, internal/abi/symtab.go and cmd/link/internal/ld/pcln.go.
//
// Files are not trusted. Every offset is checked against the table that it leads
// into, every walk has a bound, and so have all walks for one address and all of one Reader
// together ([ErrSteps]). Where inlined calls make no sense, or it is not known
// where the file has them, the function itself remains.
//
// All addresses are virtual addresses of the file.
package gopclntab
