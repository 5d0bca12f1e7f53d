package codeframes

import "slices"

const (
	// stepsPerByte bounds the instructions that are followed for each byte of code; functions
	// take two or three at most.
	stepsPerByte = 6

	// maxStates bounds the different states; files of some MiB have some thousand.
	maxStates = 16 << 10

	// bytesPerFunction bounds the functions; few are as short on average.
	bytesPerFunction = 8

	// bytesPerWay bounds the ways that wait to be followed, but for some. Files have one at a
	// time for each 64 bytes at most.
	bytesPerWay = 8
	fewWays     = 1024

	// maxPasses bounds how often code is followed anew for what was learned of its functions.
	maxPasses = 4
)

// noFunction is the owner of code that nothing has reached.
const noFunction = -1

// function is what is known of a function, or of several that share code.
type function struct {
	start  int32 // offset of its first instruction
	parent int32 // another one that it shares code with, or itself
	// returned: with the registers as they should be. wrong: otherwise.
	returned, wrong bool
	// leaves: it may go on where that is not seen, as in a function that takes over its frame.
	leaves bool
	// hops: it goes on where a register of its caller's leads to, which it has to keep: no function of C does.
	hops bool

	numJumps   uint8
	jumpStates [maxJumpStates]stateNum
}

// maxJumpStates bounds the frames with which one function jumps to what it has an address of.
const maxJumpStates = 4

// jumps returns the states at its indirect jumps.
func (fn *function) jumps() []stateNum { return fn.jumpStates[:fn.numJumps] }

// stateNum is an index into flows.states.
type stateNum uint16

// entryNum is the number of the state at the first instruction of a function.
const entryNum stateNum = 1

// flows follows code. Addresses are offsets into all regions, one behind the other.
type flows struct {
	machine
	regions []region
	bytes   int
	steps   int // that are left
	pace    func() error
	err     error // of pace

	states   []state
	numberOf map[state]stateNum

	lastState state // whose number was asked for
	lastNum   stateNum

	at        []stateNum // before the instruction at each offset; 0: not reached
	owner     []int32    // index into functions
	functions []function

	facts     []fact // of each offset
	numStarts int

	toBegin  int // the functions before this index are still to be followed, after work
	work     []way
	deferred []way  // behind calls: what jumps there is known first
	trial    *trial // nil: none is made
	last     trial
}

// fact is what is known of an instruction whatever leads to it.
type fact uint8

const (
	factStart  fact = 1 << iota // a function begins there
	factTaken                   // code takes its address
	factNoExit                  // the function that begins there never returns
	factTried                   // the trial has reached it
)

// region is a Region with its place among all.
type region struct {
	Region
	base int
}

// way leads to an instruction with a state. Many may wait to be followed.
type way struct {
	at         int32
	owner      int32
	num        stateNum // of the state
	behindCall bool     // which may be one that does not return; nothing but padding is between
}

func newFlows(m machine, regions []Region) *flows {
	f := &flows{
		machine: m, numberOf: map[state]stateNum{}, states: make([]state, 1),
	}
	for _, r := range regions {
		f.regions = append(f.regions, region{r, f.bytes})
		f.bytes += len(r.Code)
	}
	f.steps = stepsPerByte * f.bytes
	f.at = make([]stateNum, f.bytes)
	f.owner = make([]int32, f.bytes)
	f.facts = make([]fact, f.bytes)
	f.number(f.entry) // which is entryNum
	return f
}

// offset converts an address. ok is false if it lies in no region.
func (f *flows) offset(vaddr uint64) (at int32, ok bool) {
	n, found := slices.BinarySearchFunc(f.regions, vaddr, func(r region, v uint64) int {
		switch {
		case r.Start > v:
			return 1
		case v-r.Start >= uint64(len(r.Code)):
			return -1
		}
		return 0
	})
	if !found || vaddr%f.align != 0 {
		return 0, false
	}
	return int32(f.regions[n].base + int(vaddr-f.regions[n].Start)), true
}

// step counts an instruction that is followed.
func (f *flows) step() {
	f.steps--
	if f.steps%PaceSteps != 0 || f.pace == nil {
		return
	}
	if err := f.pace(); err != nil {
		f.steps, f.err = 0, err
	}
}

// regionOf returns the region that holds an offset.
func (f *flows) regionOf(at int) *region {
	n, found := slices.BinarySearchFunc(f.regions, at, func(r region, at int) int { return r.base - at })
	if !found {
		n--
	}
	return &f.regions[n]
}

// number returns the number of a state. Where there are too many, nothing is followed any more.
func (f *flows) number(s state) stateNum {
	if s == f.lastState {
		return f.lastNum
	}
	n, ok := f.numberOf[s]
	if !ok {
		if len(f.states) >= maxStates {
			f.steps = 0
			return entryNum
		}
		n = stateNum(len(f.states))
		f.states = append(f.states, s)
		f.numberOf[s] = n
	}
	f.lastState, f.lastNum = s, n
	return n
}

// root returns the function that stands for all that share code with one.
func (f *flows) root(n int32) int32 {
	for f.functions[n].parent != n {
		f.functions[n].parent = f.functions[f.functions[n].parent].parent
		n = f.functions[n].parent
	}
	return n
}

// begin adds a function. Where there are too many, nothing is followed any more.
func (f *flows) begin(at int) int32 {
	if len(f.functions) > f.bytes/bytesPerFunction+1 {
		f.steps = 0
	}
	n := int32(len(f.functions))
	f.functions = append(f.functions, function{start: int32(at), parent: n})
	return n
}

// add puts a way into a queue. Where too many wait, nothing is followed any more.
func (f *flows) add(queue *[]way, w way) {
	if len(f.work)+len(f.deferred) >= f.bytes/bytesPerWay+fewWays {
		f.steps = 0
		return
	}
	*queue = append(*queue, w)
}

// passes follows all that is known to be a function, until nothing more is learned of
// where functions begin and which never return.
func (f *flows) passes() {
	for range maxPasses {
		known := f.numStarts
		f.pass()
		if !f.findNoExits() && f.numStarts == known {
			return
		}
	}
}

func (f *flows) pass() {
	clear(f.at)
	f.functions = f.functions[:0]
	for i := range f.owner {
		f.owner[i] = noFunction
	}
	for at, known := range f.facts {
		if known&factStart != 0 {
			f.begin(at)
			if f.steps <= 0 {
				break
			}
		}
	}
	f.toBegin = len(f.functions)
	f.run()
}

// run follows all ways, those behind calls last.
func (f *flows) run() {
	for {
		switch {
		case len(f.work) > 0:
			w := f.work[len(f.work)-1]
			f.work = f.work[:len(f.work)-1]
			f.follow(w)
		case f.toBegin > 0:
			f.toBegin--
			f.follow(way{at: f.functions[f.toBegin].start, owner: int32(f.toBegin), num: entryNum})
		case len(f.deferred) > 0:
			w := f.deferred[0]
			f.deferred = f.deferred[1:]
			// A call that returns does so with the frame that jumps find there; if not, it
			// does not return.
			if f.at[w.at] == 0 || f.at[w.at] == w.num {
				f.follow(w)
			}
		default:
			return
		}
	}
}

// follow goes along one way up to where it ends or what is there is known.
func (f *flows) follow(w way) {
	r := f.regionOf(int(w.at))
	for f.steps > 0 && f.arrive(&w) {
		f.step()
		inRegion := int(w.at) - r.base
		vaddr := r.Start + uint64(inRegion)
		i := f.decode(r.Code, inRegion, vaddr)
		if i.size == 0 {
			f.failed(w.owner)
			return
		}
		next := way{at: w.at + int32(i.size), owner: w.owner, num: w.num, behindCall: w.behindCall && i.padding}
		if i.counts() || i.writes>>x86AP&1 != 0 && f.states[w.num].realigned.known {
			next.num = f.number(f.apply(f.states[w.num], &i))
		}
		if f.trial != nil {
			f.plausible(&w, &i, &next)
		}
		if i.address != 0 {
			if to, ok := f.offset(i.address); ok && (f.trial == nil || f.trial.kept) {
				f.facts[to] |= factTaken
			}
		}
		switch i.flow {
		case flowReturn:
			f.returned(&w, &i)
			return
		case flowStop:
			return
		case flowJumpIndirect:
			f.jumped(&w, &i)
			return
		case flowJump, flowBranch:
			f.goTo(i.target, next)
			if i.flow == flowJump {
				return
			}
		case flowCall, flowCallIndirect:
			if i.flow == flowCall && !f.calls(i.target) {
				return
			}
			if int(next.at) < r.base+len(r.Code) {
				next.behindCall = true
				f.add(&f.deferred, next)
			}
			return
		}
		if int(next.at) >= r.base+len(r.Code) {
			if !next.behindCall { // else what was called last does not return
				f.failed(w.owner)
			}
			return
		}
		w = next
	}
	if f.steps <= 0 {
		f.failed(w.owner)
	}
}

// arrive notes the state with which a way comes to an instruction. It returns false if
// nothing new comes of that.
func (f *flows) arrive(w *way) bool {
	if f.trial != nil && f.trial.failed {
		return false
	}
	if f.begins(w.at) && f.owner[w.at] != noFunction && f.functions[w.owner].start != w.at {
		// From the end of a function into the next one: what was called last does not return,
		// or both are one.
		if w.num == entryNum {
			f.owned(w.owner).leaves = true
		}
		return false
	}
	old := f.at[w.at]
	if old == 0 {
		f.set(w.at, w.num, w.owner)
		return true
	}
	if f.trial != nil && f.facts[w.at]&factTried == 0 {
		if !w.behindCall {
			f.meets(w)
		}
		return false
	}
	if a, b := f.root(f.owner[w.at]), f.root(w.owner); a != b {
		f.join(a, b)
	}
	if old == w.num {
		return false
	}
	n := f.number(f.states[old].meet(f.states[w.num], &f.machine))
	if n == old {
		return false
	}
	w.num = n
	f.set(w.at, n, f.owner[w.at])
	return true
}

func (f *flows) begins(at int32) bool { return f.facts[at]&factStart != 0 }

// addStart notes that a function begins at an offset.
func (f *flows) addStart(at int32) {
	if !f.begins(at) {
		f.facts[at] |= factStart
		f.numStarts++
	}
}

func (f *flows) set(at int32, n stateNum, owner int32) {
	if f.trial != nil && f.facts[at]&factTried == 0 {
		f.facts[at] |= factTried
		f.trial.reached = append(f.trial.reached, at)
		f.trial.failed = f.trial.failed || len(f.trial.reached) > maxTrial
	}
	f.at[at], f.owner[at] = n, owner
}

// join notes that two functions share code.
func (f *flows) join(a, b int32) {
	x, y := &f.functions[a], &f.functions[b]
	y.parent = a
	x.returned, x.wrong, x.leaves, x.hops = x.returned || y.returned, x.wrong || y.wrong, x.leaves || y.leaves, x.hops || y.hops
}

// goTo follows a jump: to the beginning of a function it is a call that takes over the frame.
func (f *flows) goTo(target uint64, next way) {
	to, ok := f.offset(target)
	switch {
	case !ok:
		f.owned(next.owner).leaves = true
	case f.begins(to) && f.functions[next.owner].start != to:
		next.at = to
		f.takesOver(&next)
	default:
		next.at = to
		f.add(&f.work, next)
	}
}

// takesOver notes that a way leads to the beginning of another function. Only with the frame
// of an entry can that be meant.
func (f *flows) takesOver(w *way) {
	if w.num == entryNum {
		f.owned(w.owner).leaves = true
	}
	if f.trial != nil {
		f.trial.leaves = f.trial.leaves || w.num == entryNum
		f.trial.failed = f.trial.failed || w.num != entryNum
	}
}

func (f *flows) owned(n int32) *function { return &f.functions[f.root(n)] }

// calls notes a call and reports whether it may come back.
func (f *flows) calls(target uint64) bool {
	to, ok := f.offset(target)
	if !ok {
		return true
	}
	if f.trial == nil || f.trial.kept {
		f.addStart(to)
	}
	return f.facts[to]&factNoExit == 0
}

// returned judges a return.
func (f *flows) returned(w *way, i *instruction) {
	right, known := f.states[w.num].returns(&f.machine)
	fn := f.owned(w.owner)
	switch {
	case !known:
		fn.leaves = true
		return
	case right && i.effect != effectOddReturn:
		fn.returned = true
	default:
		fn.wrong = true
		f.failed(w.owner)
	}
	if f.trial != nil {
		f.trial.confirmed = f.trial.confirmed || right
	}
}

// failed notes that a way ends where none should.
func (f *flows) failed(owner int32) {
	f.owned(owner).wrong = true
	if f.trial != nil {
		f.trial.failed = true
	}
}

// jumped notes an indirect jump: with the frame of an entry, it is a call.
func (f *flows) jumped(w *way, i *instruction) {
	if w.num == entryNum {
		fn := f.owned(w.owner)
		fn.leaves, fn.hops = true, fn.hops || i.uses&f.kept != 0
		return
	}
	fn := &f.functions[w.owner]
	if fn.numJumps < maxJumpStates && !slices.Contains(fn.jumps(), w.num) {
		fn.jumpStates[fn.numJumps] = w.num
		fn.numJumps++
	}
}

// findNoExits finds the functions that do not return, nor go on in another way that is not
// seen. What calls one does not go on behind the call. It reports whether there are new ones.
func (f *flows) findNoExits() (more bool) {
	exits := make([]bool, len(f.functions))
	for n := range f.functions {
		fn := &f.functions[n]
		if fn.returned || fn.wrong || fn.leaves || fn.numJumps > 0 {
			exits[f.root(int32(n))] = true
		}
	}
	for n := range f.functions {
		if at := f.functions[n].start; !exits[f.root(int32(n))] && f.facts[at]&factNoExit == 0 {
			f.facts[at] |= factNoExit
			more = true
		}
	}
	return more
}
