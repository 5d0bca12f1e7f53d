package symbol

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

const (
	// maxKernelBytes bounds the memory for kernel symbols; a kernel with many
	// modules takes about 8 MiB.
	maxKernelBytes = 64 << 20
	// refreshGap is the least time between two readings of the symbols. It
	// doubles each time that nothing has changed, up to maxRefreshGap: there are
	// addresses that no symbol ever holds.
	refreshGap    = time.Minute
	maxRefreshGap = time.Hour
	// renewAfter is how old the symbols may get while functions of modules and BPF programs are
	// looked up: nothing tells that a BPF program has come, or has taken the place of another one.
	// 50 ms every 10 minutes are 0.01 % of a CPU.
	renewAfter = 10 * time.Minute
)

// ErrKernelHidden says that the kernel does not show the addresses of its
// symbols to this process.
var ErrKernelHidden = errors.New("addresses of kernel symbols are hidden: grant CAP_SYSLOG, and set kernel.kptr_restrict to 0 or 1")

// Kernel is the functions of the running kernel and its modules. Its methods may
// be called from everywhere.
//
// Where one function ends, kallsyms does not say. A BPF program that was loaded since the symbols
// were read, in the place of another one or less than 64 KiB behind the start of one, may have
// that one's name until they are read again: renewAfter, or the second Refresh if none was looked
// up for as long.
type Kernel struct {
	fs  procfs.FS
	now func() time.Time

	mu      sync.Mutex
	symbols *kernelSymbols
	memo    memo[uint64] // by start
	scratch []byte
	readAt  time.Time
	gap     time.Duration  // until the symbols may be read again
	loaded  []loadedModule // just before the symbols were read
	missed  bool           // since readAt, an address was looked up that no symbol holds
	outside bool           // since readAt, a function was looked up that is not the kernel's own
	stale   bool           // other modules are loaded by now, and their symbols could not be read
}

// kernelSymbols is what one reading has found.
type kernelSymbols struct {
	packed                 // size holds the index of the module
	modules []kernelModule // the first is the kernel itself
}

// NewKernel reads the symbols of the kernel. The error may be ErrKernelHidden.
func NewKernel(fs procfs.FS) (*Kernel, error) {
	k := &Kernel{fs: fs, now: time.Now}
	loaded, _ := readModules(fs) // without it, nothing is known of where they end
	if err := k.read(loaded); err != nil {
		return nil, err
	}
	return k, nil
}

// Lookup returns the name, for people, of the function that holds a kernel address, and the name of its
// module, "" for the kernel itself and "bpf" for BPF programs.
func (k *Kernel) Lookup(addr uint64) (name, module string, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f, scratch, ok := k.symbols.before(addr, k.scratch)
	k.scratch = scratch
	if !ok || !k.holds(f, addr) {
		k.missed = true
		return "", "", false
	}
	k.outside = k.outside || f.size != 0
	name, ok = k.memo.find(f.start)
	if !ok {
		name, _ = namer{}.name(&demangler{}, f.name)
		k.memo.keep(f.start, name)
	}
	return name, k.symbols.modules[f.size].name, true
}

// holds reports whether an address behind the start of a function is in it.
func (k *Kernel) holds(f packedFunction, addr uint64) bool {
	if k.stale && f.size != 0 {
		return false
	}
	return addr-f.start < k.symbols.modules[f.size].reach(f.start)
}

// Refresh reads the symbols again if other modules are loaded by now, or if an address was looked
// up that no symbol holds, as a BPF program may have come; the latter at most once a minute, and
// less often while that is in vain. It also does when they are old (renewAfter). It takes some
// 50 ms when it does, else what it takes to read /proc/modules; Lookup goes on meanwhile with
// what is known.
func (k *Kernel) Refresh() error {
	loaded, err := readModules(k.fs)
	k.mu.Lock()
	if err != nil {
		loaded = k.loaded
	}
	changed := !slices.Equal(loaded, k.loaded)
	due := changed || k.due()
	k.mu.Unlock()
	if !due {
		return nil
	}
	if err := k.read(loaded); err != nil {
		k.putOff(loaded, changed)
		return err
	}
	return nil
}

// due reports whether the symbols are to be read again although the modules are the same.
func (k *Kernel) due() bool {
	age := k.now().Sub(k.readAt)
	return k.missed && age >= k.gap || k.outside && age >= renewAfter
}

// putOff has the symbols read again later. Until then modules that have changed have no names.
func (k *Kernel) putOff(loaded []loadedModule, changed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loaded, k.stale = loaded, k.stale || changed
	k.readAt, k.gap, k.missed = k.now(), min(2*k.gap, maxRefreshGap), true
}

func (k *Kernel) read(loaded []loadedModule) error {
	file, err := k.fs.KernelSymbols()
	if err != nil {
		return fmt.Errorf("read kernel symbols: %w", err)
	}
	defer file.Close()
	symbols, err := readKernel(file, loaded)
	if err != nil {
		return fmt.Errorf("read kernel symbols: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.symbols == nil || !k.symbols.equal(&symbols.packed):
		k.gap = refreshGap
	case k.missed:
		k.gap = min(2*k.gap, maxRefreshGap)
	}
	k.symbols, k.loaded, k.readAt = symbols, loaded, k.now()
	k.missed, k.outside, k.stale = false, false, false
	k.memo = memo[uint64]{}
	return nil
}

// readKernel reads lines of "address type name", with "\t[module]" behind the
// name for what is not in the kernel's image.
func readKernel(r io.Reader, loaded []loadedModule) (*kernelSymbols, error) {
	var all entries
	discard := all.begin(maxKernelBytes)
	defer discard()
	modules := newModules()
	visible := false
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		hex, rest, ok1 := bytes.Cut(lines.Bytes(), []byte(" "))
		kind, name, ok2 := bytes.Cut(rest, []byte(" "))
		addr, err := strconv.ParseUint(string(hex), 16, 64)
		if !ok1 || !ok2 || err != nil {
			return nil, fmt.Errorf("line %d is no symbol: %.100q", n, lines.Bytes())
		}
		modules.mark(name, addr)
		if len(kind) != 1 || !bytes.Contains([]byte("tTwW"), kind) {
			continue
		}
		visible = visible || addr != 0
		name, module, _ := bytes.Cut(name, []byte("\t"))
		if !all.add(addr, modules.index(module), name, maxKernelBytes) {
			break
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if !visible {
		return nil, ErrKernelHidden
	}
	all.tidy()
	modules.locate(loaded)
	k := &kernelSymbols{modules: modules.list}
	k.packed = packEntries(k, &all)
	return k, nil
}
