//go:build linux

package labelsource

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/golabels"
	"github.com/customlabels/otelcol-customlabels/internal/processctx"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// maxStatuses bounds the sources that are looked at, useful or not.
const maxStatuses = 64

// settle is the time after which a relocated slot must still say the same
// before it is believed: the loader writes the two words of a slot one after
// the other.
const settle = time.Millisecond

// confirm is the time during which a place in the DTV of glibc is looked at again
// though it is believed: the loader gives a module its generation when all that
// it loads has been relocated.
const confirm = 50 * time.Millisecond

// image is a file at one place in a process.
type image struct {
	file       *executable.File
	bias       uint64
	dev, inode uint64
}

// imageKey tells images apart, also when their files have been read anew, for instance as a link or
// changed attributes have given them another time of change.
type imageKey struct {
	dev, inode uint64
	bias       uint64
}

func (im *image) key() imageKey {
	id := im.file.ID()
	return imageKey{id.Dev, id.Inode, im.bias}
}

// Order is that of the places of files whose sources a look has found.
type Order []imageKey

// imagesOf returns the places of files that may have label sources.
func imagesOf(mappings []executable.Mapping) []image {
	var images []image
	for i := range mappings {
		m := &mappings[i]
		if !m.Biased || len(m.File.Facts().Plans) == 0 {
			continue
		}
		im := image{m.File, m.Bias, m.Dev, m.Inode}
		if len(images) == 0 || images[len(images)-1] != im {
			images = append(images, im)
		}
	}
	return images
}

// A Process is what sources of one process have in common.
type Process struct {
	Memory tlsresolve.Memory
	PID    int              // through which its files are opened
	Owner  executable.Owner // whose it is
	// Program is what it runs, zero if not known.
	Program procfs.FileID
	// Mappings are the executable ones, Files all that show files; in address order.
	Mappings []executable.Mapping
	Files    []procfs.Mapping
	// Context is what the process has published of itself; nil if nothing.
	Context *processctx.Context
	// Presumed are the sources that the process began with: a slot that leads to one of
	// them has got its last value.
	Presumed []record.LabelSource
	NowNs    int64
}

func (p *Process) threadDB(m *executable.Mapping) (tlsresolve.ThreadDB, error) {
	return m.File.ThreadDB(m.AskedFor(p.PID, p.Owner))
}

// A Resolver finds the label sources of one process. It remembers between looks
// what it has seen before. A copy of it is a state to come back to.
type Resolver struct {
	seen map[sourceKey]located
	// order is that of the images that were looked at last, and of their sources.
	order Order
	// certain: the places that were found last follow from the program's file alone.
	certain bool
	// news: the last look has found a place for the first time.
	news bool
}

type sourceKey struct {
	imageKey
	htlHash string // a file that was written over is another one
	abi     record.ABI
}

type located struct {
	location tlsresolve.Location
	sinceNs  int64
}

// Bytes are held for each source of a process.
const Bytes = int(unsafe.Sizeof(Status{})+unsafe.Sizeof(record.LabelSource{})+unsafe.Sizeof(located{})+unsafe.Sizeof(imageKey{})) + budget.MapEntryBytes

// Certain reports whether the sources that were found last follow from the program's file
// alone.
func (r *Resolver) Certain() bool { return r.certain }

// News reports whether the last look has found a place for the first time. The next one may believe it.
func (r *Resolver) News() bool { return r.news }

// Order is that of the last look.
func (r *Resolver) Order() Order { return r.order }

// Begin has the first look go by what another process had, of which this one is a copy.
func (r *Resolver) Begin(order Order) {
	if r.order == nil {
		r.order = order
	}
}

// Resolve looks at all sources of a process. retry tells that another look,
// soon, may find more.
func (r *Resolver) Resolve(p *Process) (sources []record.LabelSource, statuses []Status, retry bool) {
	r.news = false
	images := imagesOf(p.Mappings)
	if len(images) == 0 {
		r.order = nil
		return nil, nil, false
	}
	env := &environment{
		Process: p,
		target:  tlsresolve.Target{Machine: HostMachine()},
	}
	env.target.Libc, env.byLoader = loaderOf(p.Mappings, p.Program)
	env.target.Modules = tlsresolve.NewModules(&linked{p.Mappings, p.Program, env.byLoader, p.threadDB})
	return r.resolve(images, env)
}

// environment is a process, and what follows from its mappings.
type environment struct {
	*Process
	target   tlsresolve.Target
	byLoader bool // the loader was started as the program
}

func (r *Resolver) resolve(images []image, env *environment) (sources []record.LabelSource, statuses []Status, retry bool) {
	next := map[sourceKey]located{}
	r.certain = true
	ordered := inOrder(images, r.order, env)
	ordered = ordered[:min(len(ordered), maxStatuses)] // each has one at least
	r.order = make(Order, len(ordered))
	for i := range ordered {
		im := &ordered[i]
		r.order[i] = im.key()
		plans := im.file.Facts().Plans
		for j := range plans {
			if len(statuses) == maxStatuses {
				break
			}
			p := &plans[j]
			status := Status{Path: im.file.Path(), ABI: p.ABI, Model: p.Model, Go: p.Goroutines}
			target := env.target
			target.Definitions = definitions(images, p.ABI, env)
			location, err := r.one(im, p, env, &target, next)
			if err == nil && p.ABI == record.ABIThreadContextNodeJS {
				status.V8, err = v8Of(env)
			}
			if err == nil {
				status.Location = location
				sources, err = addSource(sources, status.Source())
			}
			status.State = stateOf(err)
			if err != nil {
				status.Err = errorText(err)
				retry = retry || mayPass(err)
			}
			statuses = append(statuses, status)
		}
	}
	r.seen = next
	return sources, statuses, retry || unconfirmed(next, env.NowNs)
}

// inOrder returns images, which are in address order, in the order of their sources: of those that publish the same
// key the first one wins, and what comes after record.MaxLabelSources is not read. So the program comes first, and then
// what was there before: a library that is loaded later must not take the place of a source that is read. Of what is
// new, the loader has most often put what it has loaded first at the highest address.
func inOrder(images []image, before Order, env *environment) []image {
	ordered := make([]image, 0, len(images))
	left := make(map[imageKey]image, len(images))
	for _, im := range images {
		left[im.key()] = im
	}
	add := func(key imageKey) {
		if im, ok := left[key]; ok {
			ordered = append(ordered, im)
			delete(left, key)
		}
	}
	for _, im := range images {
		if im.file.ID() == env.Program || env.byLoader && im.file.Facts().Program {
			add(im.key())
		}
	}
	for _, key := range before {
		add(key)
	}
	for _, im := range slices.Backward(images) {
		add(im.key())
	}
	return ordered
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
func definitions(images []image, abi record.ABI, env *environment) (all []tlsresolve.Definition) {
	if len(images) == 1 {
		return nil
	}
	for i := range images {
		im := &images[i]
		if !im.runs(env) {
			continue
		}
		for j := range im.file.Facts().Plans {
			p := &im.file.Facts().Plans[j]
			if p.ABI == abi && p.Err == nil && len(all) < maxStatuses {
				all = append(all, tlsresolve.Definition{Plan: p.TLS, Bias: im.bias})
			}
		}
	}
	return all
}

// runs reports whether an image is the program itself or a library. The offset
// of a local-exec variable holds only for the program. Other executables are
// mapped too, by debuggers and emulators.
func (im *image) runs(env *environment) bool {
	return !im.file.Facts().Program || env.byLoader || im.file.ID() == env.Program
}

// one resolves one source.
func (r *Resolver) one(im *image, p *executable.Plan, env *environment, target *tlsresolve.Target, next map[sourceKey]located) (tlsresolve.Location, error) {
	if p.Err != nil {
		return tlsresolve.Location{}, p.Err
	}
	if !im.runs(env) {
		return tlsresolve.Location{}, errNotProgram
	}
	if err := checkSchema(p, env.Context); err != nil {
		return tlsresolve.Location{}, err
	}
	if !im.file.Facts().Layout.Complete(im.bias, im.dev, im.inode, env.Files) {
		return tlsresolve.Location{}, errIncomplete
	}
	if err := checkVersion(p, im.bias, env.Memory); err != nil {
		return tlsresolve.Location{}, err
	}
	// The process can have written the version; its file says what others of the program have.
	r.certain = r.certain && im.file.ID() == env.Program && (p.Version == 0 || p.FileVersion == versionOf(p.ABI))
	if p.ABI == record.ABIGo {
		return goroutineLocation(im, p.Goroutines.Slot, target)
	}
	mem := &countedMemory{Memory: env.Memory}
	location, err := p.TLS.Resolve(mem, im.bias, *target)
	wait := settle
	if errors.Is(err, tlsresolve.ErrUnsure) {
		wait, err = confirm, nil
	}
	if err != nil || mem.reads == 0 {
		return location, err
	}
	r.certain = false
	key := sourceKey{im.key(), im.file.HTLHash(), p.ABI}
	before, ok := r.seen[key]
	if !ok || before.location != location {
		before = located{location: location, sinceNs: env.NowNs}
		r.news = true
	}
	next[key] = before
	if env.NowNs-before.sinceNs < int64(wait) && !presumedAt(env.Presumed, p.ABI, location) {
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
	case im.file.Facts().Layout.Machine != target.Machine:
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

// versionOf is the custom_labels_abi_version of a kind of custom labels.
func versionOf(abi record.ABI) int64 {
	if abi == record.ABIV1 {
		return 1
	}
	return 0
}

// checkVersion reads custom_labels_abi_version, an int, where the process has it.
func checkVersion(p *executable.Plan, bias uint64, mem tlsresolve.Memory) error {
	if p.Version == 0 {
		return nil
	}
	var b [4]byte
	if err := mem.ReadAt(b[:], bias+p.Version); err != nil {
		return err
	}
	want := versionOf(p.ABI)
	if v := binary.LittleEndian.Uint32(b[:]); int64(v) != want {
		return fmt.Errorf("%w %d, not %d", errVersion, int32(v), want)
	}
	return nil
}

// checkSchema holds the thread context against what the process says of it
// (OTEP 4947, "Process Context"). A process without a context, such as a forked
// child, still has records, of which the ids can be read. Those of Node.js are not
// looked for without: their form is still moving.
func checkSchema(p *executable.Plan, c *processctx.Context) error {
	nodeJS := p.ABI == record.ABIThreadContextNodeJS
	switch {
	case !p.ABI.ThreadContext():
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

// mayPass reports whether an error can be one of a library that is still being
// loaded: its slots, or what stands in their place, are not final; or of a file that cannot be opened just now.
func mayPass(err error) bool {
	for _, passing := range []error{
		errIncomplete, errSettling, procfs.ErrFault, executable.ErrNotOpened,
		tlsresolve.ErrNotRelocated, tlsresolve.ErrUnknownResolver, tlsresolve.ErrImplausible,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// HostMachine is the machine of the processes of this host.
func HostMachine() elf.Machine {
	if runtime.GOARCH == "arm64" {
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
