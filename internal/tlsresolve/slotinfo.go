package tlsresolve

import "fmt"

// maxSlotinfoLists bounds the parts of the loader's table of modules; glibc
// makes them of 62 entries and more.
const maxSlotinfoLists = maxModule/62 + 1

// slotinfo is an entry of the loader's table of TLS modules: the struct
// link_map that has the id, and the generation in which it got it. A thread
// whose DTV is older may still have the block of a module that had the id
// before and was unloaded.
type slotinfo struct{ link, generation uint64 }

// slotinfo reads a module's entry (struct dtv_slotinfo_list of glibc,
// sysdeps/generic/ldsodefs.h): parts {len, next, slotinfo[len]} that hold the
// modules in the order of their ids, from 0.
func (m *Modules) slotinfo(mem Memory, db *ThreadDB, module uint64) (s slotinfo, err error) {
	global, err := readWord(mem, m.dbBias+db.rtldGlobal)
	if err != nil {
		return s, fmt.Errorf("read __nptl_rtld_global: %w", err)
	}
	list := uint64(0)
	if global != 0 {
		if list, err = readWord(mem, global+db.slotinfoList); err != nil {
			return s, fmt.Errorf("read struct rtld_global: %w", err)
		}
	}
	index := module
	for range maxSlotinfoLists {
		if list == 0 {
			return s, fmt.Errorf("%w: module %d not registered", ErrNotRelocated, module)
		}
		length, err := readWord(mem, list+db.listLength)
		if err != nil {
			return s, fmt.Errorf("read table of modules: %w", err)
		}
		if index < length {
			return db.readSlot(mem, list+db.listSlots+index*db.slotBytes, module)
		}
		index -= length
		if list, err = readWord(mem, list+db.listNext); err != nil {
			return s, fmt.Errorf("read table of modules: %w", err)
		}
	}
	return s, fmt.Errorf("%w: table of modules in more than %d parts", ErrImplausible, maxSlotinfoLists)
}

func (db *ThreadDB) readSlot(mem Memory, addr, module uint64) (s slotinfo, err error) {
	if s.link, err = readWord(mem, addr+db.slotMap); err == nil {
		s.generation, err = readWord(mem, addr+db.slotGeneration)
	}
	switch {
	case err != nil:
		return s, fmt.Errorf("read table of modules: %w", err)
	case s.link == 0: // unloaded, or loaded just now
		return s, fmt.Errorf("%w: module %d not registered", ErrNotRelocated, module)
	}
	return s, nil
}
