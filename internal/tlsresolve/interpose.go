package tlsresolve

import "errors"

// final returns nil if the offset in a module's block that a slot holds is the
// one that the loader writes there, though the file has the same: a definition
// of the variable in that module stands there. Which definition a library's
// relocation binds to depends on what else is in the process; its own may have
// been interposed. ErrUnsure says that a definition has that offset, and that the loader cannot
// be asked whether it is the module's; ErrNotRelocated that none stands there.
func (p Plan) final(mem Memory, bias uint64, env Target, module, offset uint64) error {
	definitions := []Definition{{p, bias}}
	for _, d := range env.Definitions {
		if d != definitions[0] {
			definitions = append(definitions, d)
		}
	}
	agree := true
	for _, d := range definitions {
		agree = agree && d.Plan.value == offset
	}
	if agree { // whichever it is
		return nil
	}
	err := ErrNotRelocated
	for _, d := range definitions {
		if d.Plan.value != offset {
			continue
		}
		switch has, unsure := env.Modules.has(mem, env.Libc, module, d); {
		case has:
			return nil
		case unsure:
			err = ErrUnsure
		}
	}
	return err
}

// has reports whether the module is the one of a definition, or whether that cannot be known of
// this C library. Other errors stand for no: what they come from may pass.
func (m *Modules) has(mem Memory, libc Libc, module uint64, d Definition) (has, unsure bool) {
	if m == nil {
		return false, false
	}
	id, err := m.find(mem, d.Plan, d.Bias, libc)
	return err == nil && id == module, errors.Is(err, ErrNoThreadDB)
}
