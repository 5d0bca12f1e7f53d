package tlsresolve

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
)

const (
	// muslWindow is how much of musl's struct dso is searched; its TLS module
	// ends at byte 288 in musl 1.2.3.
	muslWindow = 512

	// pageBytes is the smallest page: memory is mapped to the end of one.
	pageBytes = 4 << 10
)

// muslModule finds the TLS module of a library in musl's struct dso, which
// begins with the fields of struct link_map. Where the rest stands differs by
// version and is exported nowhere, but its copy of PT_TLS cannot be mistaken
// (src/internal/libc.h: struct tls_module, in ldso/dynlink.c followed by
// tls_id):
//
//	{tls_module *next; void *image; size_t len, size, align, offset} size_t tls_id
//
// image is where PT_TLS is mapped; size can be rounded up to the alignment.
func (p Plan) muslModule(mem Memory, dso, bias uint64) (linkTLS, error) {
	var b [muslWindow]byte
	window := b[:]
	if mem.ReadAt(window, dso) != nil {
		// A struct at the end of the heap is shorter than the window.
		window = b[:min(muslWindow, pageBytes-dso%pageBytes)]
		if err := mem.ReadAt(window, dso); err != nil {
			return linkTLS{}, fmt.Errorf("read struct dso: %w", err)
		}
	}
	align := max(p.image.align, 1)
	for ; len(window) >= 48; window = window[8:] {
		image, length := binary.LittleEndian.Uint64(window), binary.LittleEndian.Uint64(window[8:])
		size, alignment := binary.LittleEndian.Uint64(window[16:]), binary.LittleEndian.Uint64(window[24:])
		if image == bias+p.image.vaddr && length == p.image.filesz && max(alignment, 1) == align && size-p.image.memsz < align {
			return linkTLS{binary.LittleEndian.Uint64(window[40:]), binary.LittleEndian.Uint64(window[32:])}, nil
		}
	}
	return linkTLS{}, fmt.Errorf("%w: no TLS module in musl's struct dso", ErrNoRelocation)
}

// atThreadPointer reports whether an offset from the thread pointer is final,
// though it is what the file has in the slot. That happens with musl on aarch64:
// of a program that has no TLS itself, the block of the first library begins at
// the thread pointer. (The ABI reserves 16 bytes there, which musl does not use.)
// The loader shows its list when it has relocated what is there at start; and
// the first library's definition is the first that it finds, so no other can
// have taken its place.
func (p Plan) atThreadPointer(mem Memory, bias uint64, env Target, offset int64) bool {
	if p.machine != elf.EM_AARCH64 || env.Libc != Musl || env.Modules == nil || offset != int64(p.value) {
		return false
	}
	link, err := env.Modules.link(mem, p.object(bias))
	if err != nil {
		return false
	}
	tls, err := p.muslModule(mem, link, bias)
	return err == nil && tls.module != 0 && tls.offset == 0
}
