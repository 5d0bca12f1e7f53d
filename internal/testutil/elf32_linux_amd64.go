// SPDX-License-Identifier: Apache-2.0

package testutil

import "encoding/binary"

// Spin32Bit is a static 32-bit program that asks for a signal after twenty minutes, then
// computes, with a system call now and then.
func Spin32Bit() []byte {
	return elf32([]byte{
		0xb8, 27, 0, 0, 0, // mov eax, 27 (alarm)
		0xbb, 0xb0, 4, 0, 0, // mov ebx, 1200
		0xcd, 0x80, // int 0x80
		0xb9, 0, 0, 0x10, 0, // again: mov ecx, 0x100000
		0x49,       // count: dec ecx
		0x75, 0xfd, // jnz count
		0xb8, 20, 0, 0, 0, // mov eax, 20 (getpid)
		0xcd, 0x80, // int 0x80
		0xeb, 0xef, // jmp again
	})
}

// exit32Bit is a static 32-bit program that ends with exitStatus32.
func exit32Bit() []byte {
	return elf32([]byte{
		0xb8, 1, 0, 0, 0, // mov eax, 1 (exit)
		0xbb, exitStatus32, 0, 0, 0, // mov ebx, status
		0xcd, 0x80, // int 0x80
	})
}

// elf32 makes an executable of code for i386.
func elf32(code []byte) []byte {
	const base, headers = 0x08048000, 52 + 32
	le := binary.LittleEndian
	b := []byte{0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	for _, half := range []uint16{2, 3} { // ET_EXEC, EM_386
		b = le.AppendUint16(b, half)
	}
	for _, word := range []uint32{1, base + headers, 52, 0, 0} { // version, entry, phoff, shoff, flags
		b = le.AppendUint32(b, word)
	}
	for _, half := range []uint16{52, 32, 1, 40, 0, 0} { // ehsize, phentsize, phnum, shentsize, shnum, shstrndx
		b = le.AppendUint16(b, half)
	}
	size := uint32(headers + len(code))
	for _, word := range []uint32{1, 0, base, base, size, size, 5, 0x1000} { // PT_LOAD, read and execute
		b = le.AppendUint32(b, word)
	}
	return append(b, code...)
}
