package tlsresolve

// final reports whether the offset in a module's block that a slot holds is the
// one that the loader writes there, though the file has the same: a definition
// of the variable in that module stands there. Which definition a library's
// relocation binds to depends on what else is in the process; its own may have
// been interposed.
func (p Plan) final(mem Memory, bias uint64, env Target, module, offset uint64) bool {
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
		return true
	}
	for _, d := range definitions {
		if d.Plan.value == offset && env.Modules.has(mem, env.Libc, module, d) {
			return true
		}
	}
	return false
}

// has reports whether the module is the one of a definition. Errors stand for
// no: what they come from may pass, or the process cannot tell.
func (m *Modules) has(mem Memory, libc Libc, module uint64, d Definition) bool {
	if m == nil {
		return false
	}
	id, err := m.find(mem, d.Plan, d.Bias, libc)
	return err == nil && id == module
}
