//go:build linux

package process

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/golabels"
	"github.com/customlabels/otelcol-customlabels/internal/processctx"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
	"github.com/customlabels/otelcol-customlabels/internal/v8heap"
)

// maxSourceStatuses bounds the sources that are looked at, useful or not.
const maxSourceStatuses = 64

// settle is the time after which a relocated slot must still say the same
// before it is believed: the loader writes the two words of a slot one after
// the other.
const settle = time.Millisecond

// confirm is the time during which a place in the DTV of glibc is looked at again
// though it is believed: the loader gives a module its generation when all that
// it loads has been relocated.
const confirm = 50 * time.Millisecond

var (
	errIncomplete = errors.New("library not completely mapped yet")
	errSettling   = errors.New("slot relocated just now")
	errNotProgram = errors.New("executable is not the program that runs")
	errVersion    = errors.New("unsupported " + versionSymbol)
	errSchema     = errors.New("thread contexts of another form")
	errDuplicate  = errors.New("same variable as another source")
	errOverLimit  = errors.New("too many label sources")
)

// image is a file at one place in a process.
type image struct {
	file       *File
	bias       uint64
	dev, inode uint64
}

// resolver finds the label sources of one process. It remembers between runs
// what it has seen before.
type resolver struct {
	seen map[sourceKey]located
	// certain: the places that were found last follow from the program's file alone.
	certain bool
}

type sourceKey struct {
	file *File
	bias uint64
	abi  record.ABI
}

type located struct {
	location tlsresolve.Location
	sinceNs  int64
}

// sourceContext is what sources of one process have in common.
type sourceContext struct {
	memory   tlsresolve.Memory
	target   tlsresolve.Target
	program  procfs.FileID    // what it runs, zero if not known
	byLoader bool             // the loader was started as the program
	mappings []procfs.Mapping // all that show files, in address order
	nowNs    int64
	context  *processctx.Context // nil if there is none
	v8       func() (v8heap.Layout, error)
	// presumed are the sources that the process began with: a slot that leads to one of
	// them has got its last value.
	presumed []record.LabelSource
}

// resolve looks at all sources of some images. retry tells that another try,
// soon, may find more.
func (r *resolver) resolve(images []image, env *sourceContext) (sources []record.LabelSource, statuses []SourceStatus, retry bool) {
	next := map[sourceKey]located{}
	r.certain = true
	for i := range images {
		im := &images[i]
		for j := range im.file.facts.plans {
			if len(statuses) == maxSourceStatuses {
				break
			}
			p := &im.file.facts.plans[j]
			status := SourceStatus{Path: im.file.path, ABI: p.abi, Model: p.model, Go: p.goroutines}
			target := env.target
			target.Definitions = definitions(images, p.abi, env)
			location, err := r.one(im, p, env, &target, next)
			if err == nil && p.abi == record.ABIThreadContextNodeJS {
				status.V8, err = env.v8()
			}
			if err == nil {
				status.Location = location
				sources, err = addSource(sources, status.Source())
			}
			status.State = stateOf(err)
			if err != nil {
				status.Err = err.Error()
				retry = retry || mayPass(err)
			}
			statuses = append(statuses, status)
		}
	}
	r.seen = next
	return sources, statuses, retry || unconfirmed(next, env.nowNs)
}

// unconfirmed reports whether there are locations to be looked at again.
func unconfirmed(seen map[sourceKey]located, nowNs int64) bool {
	for _, s := range seen {
		if s.location.Kind == record.TLSDTVGlibc && nowNs-s.sinceNs < int64(confirm) {
			return true
		}
	}
	return false
}

// definitions returns all definitions of a variable, when there are several.
func definitions(images []image, abi record.ABI, env *sourceContext) (all []tlsresolve.Definition) {
	if len(images) == 1 {
		return nil
	}
	for i := range images {
		im := &images[i]
		if !im.runs(env) {
			continue
		}
		for j := range im.file.facts.plans {
			p := &im.file.facts.plans[j]
			if p.abi == abi && p.err == nil && len(all) < maxSourceStatuses {
				all = append(all, tlsresolve.Definition{Plan: p.plan, Bias: im.bias})
			}
		}
	}
	return all
}

// runs reports whether an image is the program itself or a library. The offset
// of a local-exec variable holds only for the program. Other executables are
// mapped too, by debuggers and emulators.
func (im *image) runs(env *sourceContext) bool {
	return !im.file.facts.executable || env.byLoader || im.file.key == env.program
}

// one resolves one source.
func (r *resolver) one(im *image, p *plan, env *sourceContext, target *tlsresolve.Target, next map[sourceKey]located) (tlsresolve.Location, error) {
	if p.err != nil {
		return tlsresolve.Location{}, p.err
	}
	if !im.runs(env) {
		return tlsresolve.Location{}, errNotProgram
	}
	if err := checkSchema(p, env.context); err != nil {
		return tlsresolve.Location{}, err
	}
	if !im.file.facts.layout.complete(im.bias, im.dev, im.inode, env.mappings) {
		return tlsresolve.Location{}, errIncomplete
	}
	if err := checkVersion(p, im.bias, env.memory); err != nil {
		return tlsresolve.Location{}, err
	}
	if p.abi == record.ABIGo {
		r.certain = r.certain && im.file.key == env.program
		return goroutineLocation(im, p.goroutines.Slot, target)
	}
	r.certain = r.certain && im.file.key == env.program
	mem := &countedMemory{Memory: env.memory}
	location, err := p.plan.Resolve(mem, im.bias, *target)
	if err != nil || mem.reads == 0 {
		return location, err
	}
	r.certain = false
	key := sourceKey{im.file, im.bias, p.abi}
	before, ok := r.seen[key]
	if !ok || before.location != location {
		before = located{location: location, sinceNs: env.nowNs}
	}
	next[key] = before
	if env.nowNs-before.sinceNs < int64(settle) && !presumedAt(env.presumed, p.abi, location) {
		return tlsresolve.Location{}, errSettling
	}
	return location, nil
}

func presumedAt(presumed []record.LabelSource, abi record.ABI, location tlsresolve.Location) bool {
	return slices.ContainsFunc(presumed, func(s record.LabelSource) bool { return s.ABI == abi && tlsresolve.LocationOf(&s) == location })
}

// goroutineLocation is where the threads of a Go program have their goroutines,
// which its file tells.
func goroutineLocation(im *image, slot golabels.Slot, target *tlsresolve.Target) (tlsresolve.Location, error) {
	switch {
	case im.file.facts.layout.machine != target.Machine:
		return tlsresolve.Location{}, tlsresolve.ErrMachine
	case slot.Register:
		return tlsresolve.Location{Kind: record.TLSRegister}, nil
	}
	return tlsresolve.Location{Kind: record.TLSStatic, Offset: slot.Offset}, nil
}

// addSource appends a source unless it is there already.
func addSource(sources []record.LabelSource, s record.LabelSource) ([]record.LabelSource, error) {
	for _, other := range sources {
		if other == s {
			return sources, errDuplicate
		}
	}
	if len(sources) == record.MaxLabelSources {
		return sources, errOverLimit
	}
	return append(sources, s), nil
}

// checkVersion reads custom_labels_abi_version, an int, where the process has it.
func checkVersion(p *plan, bias uint64, mem tlsresolve.Memory) error {
	if p.version == 0 {
		return nil
	}
	var b [4]byte
	if err := mem.ReadAt(b[:], bias+p.version); err != nil {
		return err
	}
	want := uint32(0)
	if p.abi == record.ABIV1 {
		want = 1
	}
	if v := binary.LittleEndian.Uint32(b[:]); v != want {
		return fmt.Errorf("%w %d, not %d", errVersion, int32(v), want)
	}
	return nil
}

// checkSchema holds the thread context against what the process says of it
// (OTEP 4947, "Process Context"). A process without a context, such as a forked
// child, still has records, of which the ids can be read. Those of Node.js are not
// looked for without: their form is still moving.
func checkSchema(p *plan, c *processctx.Context) error {
	nodeJS := p.abi == record.ABIThreadContextNodeJS
	switch {
	case !p.abi.ThreadContext():
		return nil
	case c == nil && nodeJS:
		return fmt.Errorf("%w: there is no process context", errSchema)
	case c == nil:
		return nil
	}
	switch {
	case c.Schema.NodeJS() && nodeJS, c.Schema.TLS() && !nodeJS:
		return nil
	case c.Schema == processctx.SchemaUnpublished:
		return fmt.Errorf("%w: the process context does not tell it", errSchema)
	}
	return fmt.Errorf("%w: %q", errSchema, c.Schema)
}

// stateOf classifies what became of a source.
func stateOf(err error) SourceState {
	for _, c := range []struct {
		err   error
		state SourceState
	}{
		{nil, SourceActive},
		{errIncomplete, SourceNotRelocated},
		{errSettling, SourceNotRelocated},
		{tlsresolve.ErrNotRelocated, SourceNotRelocated},
		{tlsresolve.ErrNoRelocation, SourceNoRelocation},
		{errVersion, SourceUnsupportedVersion},
		{v8heap.ErrUnknown, SourceUnsupportedVersion},
		{golabels.ErrVersion, SourceUnsupportedVersion},
		{golabels.ErrSlot, SourceUnsupportedModel},
		{errSchema, SourceUnsupportedSchema},
		{tlsresolve.ErrUnknownResolver, SourceUnsupportedModel},
		{tlsresolve.ErrUnknownLibc, SourceUnsupportedModel},
		{tlsresolve.ErrLayout, SourceUnsupportedModel},
		{tlsresolve.ErrMachine, SourceUnsupportedModel},
		{tlsresolve.ErrUndefinedWeak, SourceUndefined},
		{errNotProgram, SourceNotProgram},
		{errDuplicate, SourceDuplicate},
		{errOverLimit, SourceOverLimit},
	} {
		if errors.Is(err, c.err) {
			return c.state
		}
	}
	return SourceUnreadable
}

// mayPass reports whether an error can be one of a library that is still being
// loaded: its slots, or what stands in their place, are not final.
func mayPass(err error) bool {
	for _, passing := range []error{
		errIncomplete, errSettling, procfs.ErrFault,
		tlsresolve.ErrNotRelocated, tlsresolve.ErrUnknownResolver, tlsresolve.ErrImplausible,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// hostMachine is the machine of the processes of this host.
func hostMachine(goarch string) elf.Machine {
	if goarch == "arm64" {
		return elf.EM_AARCH64
	}
	return elf.EM_X86_64
}

// countedMemory tells whether an answer depends on the state of the process.
type countedMemory struct {
	tlsresolve.Memory
	reads int
}

func (m *countedMemory) ReadAt(p []byte, addr uint64) error {
	m.reads++
	return m.Memory.ReadAt(p, addr)
}
