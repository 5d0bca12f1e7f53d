package codeframes

// maxFailures bounds the trials that come to nothing, for each KiB of code.
const maxFailures = 64

// maxTrial bounds the instructions of a trial; the largest functions have some thousand.
const maxTrial = 16 << 10

// trial follows code that nothing leads to, with a state that is a guess.
type trial struct {
	reached []int32 // offsets
	// confirmed: by a return, or by code that is known. leaves: to another function.
	confirmed, leaves, failed bool
	// odd: calls with a stack that is not aligned, which compilers make only of functions
	// that they know.
	odd bool

	kept     bool      // it has succeeded before
	straight bool      // only one way was followed yet
	written  registers // since then
}

const (
	// maxArguments bounds what a function finds on the stack.
	maxArguments = 256
	// stackAlign is what the stack pointer is a multiple of when a function is called.
	stackAlign = 16
)

// plausible looks for what functions do not do: to use registers that are not theirs, to take
// more from the stack than they have put there.
func (f *flows) plausible(w *way, i *instruction, next *way) {
	t, s, after := f.trial, &f.states[w.num], &f.states[next.num]
	switch {
	case s.spKnown && !after.spKnown && after.raWhere == lost:
		t.failed = true
	case s.spKnown && i.stack && s.sp+i.stackAt >= maxArguments:
		t.failed = true
	case s.spKnown && i.stack && !f.link && s.sp+i.stackAt < 0 && s.sp+i.stackAt >= f.entry.sp:
		t.failed = true // its return address
	case t.straight && i.uses&f.kept&^t.written != 0:
		t.failed = true
	}
	if i.flow == flowCall || i.flow == flowCallIndirect {
		t.odd = t.odd || s.spKnown && s.sp%stackAlign != 0
	}
	t.written |= i.writes
	if i.flow != flowNext && i.flow != flowCall && i.flow != flowCallIndirect {
		t.straight = false
	}
}

// tryRest tries all code that nothing has reached.
func (f *flows) tryRest(sane bool) {
	owner := int32(noFunction) // of the instruction before
	for n := range f.regions {
		r := &f.regions[n]
		failures := maxFailures * (len(r.Code)/1024 + 1)
		for at := 0; at < len(r.Code) && f.steps > 0; {
			i := f.decode(r.Code, at, r.Start+uint64(at))
			if f.at[r.base+at] != 0 {
				owner = f.owner[r.base+at]
				at += max(i.size, 1)
				continue
			}
			f.step()
			switch {
			case i.size == 0:
				at += int(f.align)
				continue
			case i.padding:
				at += i.size
				continue
			case failures > 0 && f.try(r.base+at, owner, sane):
				continue
			}
			failures--
			at = f.behind(r, at)
		}
	}
}

// behind returns where the straight code ends that begins at an offset in a region.
func (f *flows) behind(r *region, at int) int {
	for at < len(r.Code) && f.at[r.base+at] == 0 && f.steps > 0 {
		f.step()
		i := f.decode(r.Code, at, r.Start+uint64(at))
		at += max(i.size, int(f.align))
		if i.size == 0 || i.ends() {
			break
		}
	}
	return at
}

// try follows code with the frames that the function before has at its indirect jumps, and
// as a function of its own. What is confirmed is kept, if it is not both.
func (f *flows) try(at int, before int32, sane bool) bool {
	var jumps []stateNum
	taken := f.facts[at]&factTaken != 0
	if before != noFunction {
		jumps = f.functions[before].jumps()
	}
	found := stateNum(0)
	for _, n := range jumps {
		if t := f.follows(at, n); t.confirmed && !t.failed {
			if found != 0 {
				return false
			}
			found = n
		}
	}
	t := f.follows(at, entryNum)
	own := !t.failed && (t.confirmed && (taken || !t.odd) || sane && !t.odd && (t.leaves || taken))
	switch {
	case own && found != 0 && !taken:
		return false
	case own:
		f.keep(at, entryNum, noFunction)
	case found != 0:
		f.keep(at, found, before)
	default:
		return false
	}
	return true
}

// follows makes a trial and takes back what it has changed. What it returns holds until the
// next trial.
func (f *flows) follows(at int, n stateNum) *trial {
	t, functions := f.start(at, n, false)
	for _, at := range t.reached {
		f.at[at], f.owner[at] = 0, noFunction
	}
	f.functions = f.functions[:functions]
	return t
}

// keep repeats a trial that has succeeded. The code belongs to the function before, or is one.
func (f *flows) keep(at int, n stateNum, before int32) {
	t, own := f.start(at, n, true)
	if before == noFunction {
		return
	}
	for _, at := range t.reached {
		f.owner[at] = before
	}
	for _, n := range f.functions[own].jumps() {
		f.jumped(&way{num: n, owner: before}, &instruction{})
	}
	f.functions = f.functions[:own]
}

func (f *flows) start(at int, n stateNum, kept bool) (t *trial, own int) {
	f.last = trial{reached: f.last.reached[:0], straight: n == entryNum, kept: kept}
	t, own = &f.last, len(f.functions)
	f.trial = t
	f.work = append(f.work, way{at: int32(at), owner: f.begin(at), num: n})
	f.run()
	for _, at := range t.reached {
		f.facts[at] &^= factTried
	}
	f.trial = nil
	return t, own
}

// meets compares a way with what it comes to that is known.
func (f *flows) meets(w *way) {
	if f.at[w.at] == w.num {
		f.trial.confirmed = true
	} else {
		f.trial.failed = true
	}
}
