package tlsresolve

import (
	"encoding/binary"
	"fmt"
)

const (
	// maxLinks bounds the libraries of a process, those of all namespaces
	// together.
	maxLinks = 4096

	// maxNamespaces bounds the lists of libraries: DL_NNS of glibc.
	maxNamespaces = 16
)

// link returns the address of the struct link_map of a loaded file.
func (m *Modules) link(mem Memory, o object) (uint64, error) {
	if !m.listed {
		m.listed = true
		m.links = map[object]uint64{}
		m.linksErr = m.readLinks(mem)
	}
	if m.linksErr != nil {
		return 0, m.linksErr
	}
	addr, ok := m.links[o]
	if !ok {
		return 0, fmt.Errorf("%w: not in the loader's list of libraries", ErrNotRelocated)
	}
	return addr, nil
}

// readLinks reads the lists of libraries, from the program's DT_DEBUG
// (struct r_debug and struct link_map of <link.h>, the same for all C
// libraries):
//
//	r_debug  {int r_version; link_map *r_map; r_brk; r_state; r_ldbase; r_debug *r_next (version 2)}
//	link_map {l_addr; char *l_name; l_ld; link_map *l_next; l_prev}
func (m *Modules) readLinks(mem Memory) error {
	places := m.files.DebugAddresses()
	if len(places) == 0 {
		return fmt.Errorf("%w: program without a list of its libraries (DT_DEBUG)", ErrNoRelocation)
	}
	for _, place := range places {
		debug, err := readWord(mem, place)
		if err != nil {
			return fmt.Errorf("read DT_DEBUG: %w", err)
		}
		if debug != 0 {
			return m.readNamespaces(mem, debug)
		}
	}
	return fmt.Errorf("%w: no list of libraries yet", ErrNotRelocated)
}

// readNamespaces reads the lists of all namespaces (dlmopen).
func (m *Modules) readNamespaces(mem Memory, debug uint64) error {
	total := 0
	for range maxNamespaces {
		version, first, err := readPair(mem, debug)
		if err != nil {
			return fmt.Errorf("read struct r_debug: %w", err)
		}
		if err := m.readList(mem, first, &total); err != nil {
			return err
		}
		if uint32(version) < 2 {
			return nil
		}
		if debug, err = readWord(mem, debug+40); err != nil {
			return fmt.Errorf("read struct r_debug: %w", err)
		}
		if debug == 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: more than %d lists of libraries", ErrImplausible, maxNamespaces)
}

func (m *Modules) readList(mem Memory, link uint64, total *int) error {
	for ; link != 0; *total++ {
		if *total == maxLinks {
			return fmt.Errorf("%w: list of more than %d libraries", ErrImplausible, maxLinks)
		}
		var b [32]byte
		if err := mem.ReadAt(b[:], link); err != nil {
			return fmt.Errorf("read struct link_map: %w", err)
		}
		m.links[objectOf(b[:])] = link
		link = binary.LittleEndian.Uint64(b[24:])
	}
	return nil
}

// objectOf parses the start of a struct link_map.
func objectOf(b []byte) object {
	return object{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[16:])}
}
