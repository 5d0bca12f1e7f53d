//go:build linux && (amd64 || arm64)

package writercheck

import (
	"encoding/binary"
	"errors"

	"github.com/customlabels/otelcol-customlabels/internal/labelread"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// reading is what a stopped thread had in one label source.
type reading struct {
	abi     record.ABI
	pointer uint64 // what the variable held, but of v0
	none    bool   // there is nothing to judge
	set     *labelSet
	record  *contextRecord
	other   labelread.Reading // of formats that package labelread reads
}

// readThread stops the thread whose turn it is and judges what it has published.
func (w *watch) readThread(turn int) error {
	if len(w.sources) == 0 {
		if _, err := w.fs.LiveThread(w.pid); err != nil {
			return procfs.ErrNoProcess
		}
		return nil
	}
	tids, _, err := w.fs.Threads(w.pid, maxHistories)
	if err != nil || len(tids) == 0 {
		return procfs.ErrNoProcess
	}
	tid := tids[turn/2%len(tids)]
	if turn%2 == 1 { // of many threads few do something
		tid = w.running(tids, turn/2, tid)
	}
	readings := make([]reading, 0, len(w.sources))
	_, err = labelread.Stop(w.pid, tid, func(s labelread.Stopped) {
		if s.Compat {
			return
		}
		for i := range w.sources {
			readings = append(readings, read(procfs.Memory{PID: tid}, s, w.sources[i]))
		}
	})
	if err != nil {
		if errors.Is(err, labelread.ErrHangs) || errors.Is(err, labelread.ErrPermission) {
			return err
		}
		return nil // it has ended, or is traced by another
	}
	w.reads.Stops++
	w.labelled(tid, false)
	for i := range readings {
		w.judgeReading(tid, &readings[i])
	}
	return nil
}

// labelled notes whether a thread had labels when it was stopped.
func (w *watch) labelled(tid int, yes bool) {
	if had, known := w.threads[tid]; known || len(w.threads) < maxHistories {
		w.threads[tid] = had || yes
	}
}

// running returns a thread that runs or wants to, another one each turn, or else the given one.
func (w *watch) running(tids []int, turn, otherwise int) int {
	for i := range min(len(tids), maxThreads) {
		tid := tids[(turn+i)%len(tids)]
		if stat, err := w.fs.Stat(tid); err == nil && stat.State == 'R' {
			return tid
		}
	}
	return otherwise
}

// read copies what a stopped thread has in a source.
func read(mem Memory, s labelread.Stopped, source record.LabelSource) reading {
	r := reading{abi: source.ABI}
	machine := labelsource.HostMachine()
	if source.ABI == record.ABIGo || source.ABI == record.ABIThreadContextNodeJS {
		r.other = labelread.Read(mem, machine, s, source)
		return r
	}
	addr, err := tlsresolve.LocationOf(&source).Address(mem, machine, s.ThreadPointer)
	if err != nil {
		r.none = true // this thread has no such variable
		return r
	}
	if source.ABI == record.ABIV0 {
		r.set = readLabelSet(mem, addr)
		return r
	}
	var b [wordBytes]byte
	if mem.ReadAt(b[:], addr) != nil {
		r.none = true
		return r
	}
	r.pointer = binary.LittleEndian.Uint64(b[:])
	switch {
	case r.pointer == 0:
	case source.ABI == record.ABIV1:
		r.set = readLabelSet(mem, r.pointer)
	default:
		r.record = readContextRecord(mem, r.pointer)
	}
	return r
}

// judgeReading judges what a thread had.
func (w *watch) judgeReading(tid int, r *reading) {
	if r.none {
		return
	}
	f := formatOf(r.abi)
	switch {
	case r.abi == record.ABIGo:
		w.judgeGo(tid, &r.other)
		return
	case r.abi == record.ABIThreadContextNodeJS:
		if !w.nodeRecord(r) {
			return
		}
	case r.abi == record.ABIThreadContext:
		w.judgeWay(tid, r)
	}
	var present, ok bool
	switch {
	case r.set != nil:
		present, ok = r.set.judge(w.t, f)
	case r.record != nil:
		present, ok = r.record.judge(w.t, f)
		if present {
			ok = w.judgeIndexes(r.record, f) && ok
		} else if ok {
			w.reads.Updating++
		}
	default:
		return
	}
	if present {
		w.labelled(tid, true)
		w.reads.Published++
	}
	if !ok {
		w.reads.Invalid++
	}
}

// judgeIndexes judges the key indexes of a record by the key map of now: names are published
// before they are used.
func (w *watch) judgeIndexes(r *contextRecord, f Format) bool {
	if r.beyond(len(w.context.known.names)) {
		w.refreshContext()
	}
	if len(w.contexts) > 0 && !w.context.decoded {
		w.t.note(f.rule(ruleIndexes), "the process context could not be read")
		return true
	}
	return r.indexes(w.t, f, w.context.known.names)
}

// judgeWay judges how a thread changes its record: by the pointer or by valid.
func (w *watch) judgeWay(tid int, r *reading) {
	h := w.histories[tid]
	if h == nil {
		if len(w.histories) == maxHistories {
			return
		}
		h = &history{}
		w.histories[tid] = h
	}
	h.swapped = h.swapped || h.pointer != 0 && r.pointer != h.pointer
	h.marked = h.marked || r.record != nil && r.record.err == nil && r.record.head[recordValid] == 0
	if r.record != nil && r.record.err == nil {
		w.changes = w.changes || h.pointer != 0 && (r.pointer != h.pointer || r.record.head != h.head)
		h.head = r.record.head
		if r.record.head[recordValid] == 0 {
			w.incomplete++
		} else {
			w.complete++
		}
	}
	h.pointer = r.pointer
	if h.swapped || h.marked {
		w.t.check(ThreadContext.rule(ruleOneWay), !h.swapped || !h.marked, "%s", wayText(h))
	}
}

func wayText(h *history) string {
	switch {
	case h.swapped && h.marked:
		return "a thread whose pointer changed and whose record had valid 0"
	case h.swapped:
		return "the pointer changes"
	}
	return "valid changes"
}

// judgeGo judges the labels of a goroutine.
func (w *watch) judgeGo(tid int, r *labelread.Reading) {
	switch r.Outcome {
	case record.OutcomePresent, record.OutcomeTruncated:
		w.goLabels = true
		w.labelled(tid, true)
		w.reads.Published++
		w.t.check(Go.rule(ruleSet), true, "labels at %#x", r.Pointer)
	case record.OutcomeFault, record.OutcomeInvalid:
		w.reads.Invalid++
		w.t.check(Go.rule(ruleSet), false, "%v", r.Err)
	}
}

// nodeRecord takes over the record of a Node.js thread, and reports whether there is one.
func (w *watch) nodeRecord(r *reading) bool {
	switch r.other.Outcome {
	case record.OutcomePresent, record.OutcomeTruncated:
		w.t.check(NodeJS.rule(ruleRecord), true, "a record")
		var ok bool
		r.record, ok = parseContextRecord(nodePayload(r.other.Block))
		return ok
	case record.OutcomeFault, record.OutcomeInvalid:
		w.reads.Invalid++
		w.t.check(NodeJS.rule(ruleRecord), false, "%v", r.other.Err)
	}
	return false
}

// nodePayload is what a label block holds: the record as it was copied.
func nodePayload(block []byte) []byte {
	if len(block) < record.LabelBlockBytes {
		return nil
	}
	n := int(binary.LittleEndian.Uint16(block[2:]))
	return block[record.LabelBlockBytes:min(record.LabelBlockBytes+n, len(block))]
}
