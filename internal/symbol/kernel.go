package symbol

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

const (
	// maxKernelBytes bounds the memory for kernel symbols; a kernel with many
	// modules takes about 8 MiB.
	maxKernelBytes = 64 << 20
	// maxModules bounds the number of names of modules.
	maxModules = 1<<16 - 1
	// maxKernelFunctionBytes bounds how far a kernel function may reach: its
	// size is not known, and behind the last one of a module there is a gap.
	maxKernelFunctionBytes = 1 << 20
	// refreshGap is the least time between two readings of the symbols. It
	// doubles each time that nothing has changed, up to maxRefreshGap: there are
	// addresses that no symbol ever holds.
	refreshGap    = time.Minute
	maxRefreshGap = time.Hour
)

// ErrKernelHidden says that the kernel does not show the addresses of its
// symbols to this process.
var ErrKernelHidden = errors.New("addresses of kernel symbols are hidden: grant CAP_SYSLOG, and set kernel.kptr_restrict to 0 or 1")

// Kernel is the functions of the running kernel and its modules. Its methods may
// be called from everywhere.
type Kernel struct {
	fs  procfs.FS
	now func() time.Time

	mu      sync.Mutex
	symbols *kernelSymbols
	memo    map[uint64]Function // by start
	scratch []byte
	readAt  time.Time
	gap     time.Duration // until the symbols may be read again
	missed  bool          // since readAt, an address was looked up that no symbol holds
}

// kernelSymbols is what one reading has found.
type kernelSymbols struct {
	packed           // size holds the index of the module
	modules []string // the first is the kernel itself, ""
}

// NewKernel reads the symbols of the kernel. The error may be ErrKernelHidden.
func NewKernel(fs procfs.FS) (*Kernel, error) {
	k := &Kernel{fs: fs, now: time.Now, memo: map[uint64]Function{}}
	if err := k.read(); err != nil {
		return nil, err
	}
	return k, nil
}

// Lookup returns the function that holds a kernel address, and the name of its
// module, "" for the kernel itself and "bpf" for BPF programs.
func (k *Kernel) Lookup(addr uint64) (fn Function, module string, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f, scratch, ok := k.symbols.before(addr, k.scratch)
	k.scratch = scratch
	if !ok || addr-f.start >= maxKernelFunctionBytes || isEnd(f.name) {
		k.missed = true
		return Function{}, "", false
	}
	fn, ok = k.memo[f.start]
	if !ok {
		if len(k.memo) == maxMemo {
			clear(k.memo)
		}
		fn, _ = namer{}.function(&demangler{}, f.name, f.start)
		k.memo[f.start] = fn
	}
	return fn, k.symbols.modules[f.size], true
}

// Refresh reads the symbols again if an address was looked up that none holds,
// as modules may have been loaded since; at most once a minute, and less often
// while that is in vain. It takes some 50 ms when it does; Lookup goes on
// meanwhile with what is known.
func (k *Kernel) Refresh() error {
	k.mu.Lock()
	due := k.missed && k.now().Sub(k.readAt) >= k.gap
	k.mu.Unlock()
	if !due {
		return nil
	}
	err := k.read()
	if err != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.readAt, k.gap = k.now(), min(2*k.gap, maxRefreshGap)
	}
	return err
}

func (k *Kernel) read() error {
	file, err := k.fs.KernelSymbols()
	if err != nil {
		return fmt.Errorf("read kernel symbols: %w", err)
	}
	defer file.Close()
	symbols, err := readKernel(file)
	if err != nil {
		return fmt.Errorf("read kernel symbols: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.symbols != nil && k.symbols.equal(&symbols.packed) {
		k.gap = min(2*k.gap, maxRefreshGap)
	} else {
		k.gap = refreshGap
	}
	k.symbols, k.readAt, k.missed = symbols, k.now(), false
	clear(k.memo)
	return nil
}

// readKernel reads lines of "address type name", with "\t[module]" behind the
// name for what is not in the kernel's image.
func readKernel(r io.Reader) (*kernelSymbols, error) {
	var all entries
	discard := all.begin(maxKernelBytes)
	defer discard()
	modules := modules{names: []string{""}, indexes: map[string]uint32{"": 0}}
	visible := false
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		hex, rest, ok1 := bytes.Cut(lines.Bytes(), []byte(" "))
		kind, name, ok2 := bytes.Cut(rest, []byte(" "))
		addr, err := strconv.ParseUint(string(hex), 16, 64)
		if !ok1 || !ok2 || err != nil {
			return nil, fmt.Errorf("line %d is no symbol: %.100q", n, lines.Bytes())
		}
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
	k := &kernelSymbols{modules: modules.names}
	k.packed = packEntries(k, &all)
	return k, nil
}

// modules gives names of modules indexes.
type modules struct {
	names   []string
	indexes map[string]uint32
}

// index returns the index of a module, given as "[name]".
func (m *modules) index(bracketed []byte) uint64 {
	name := bytes.Trim(bracketed, "[]")
	i, ok := m.indexes[string(name)]
	if !ok {
		if len(m.names) == maxModules {
			return 0
		}
		i = uint32(len(m.names))
		m.names = append(m.names, string(name))
		m.indexes[string(name)] = i
	}
	return uint64(i)
}

// isEnd recognizes the symbols that mark the end of code and are no functions.
func isEnd(name []byte) bool {
	return string(name) == "_etext" || string(name) == "_einittext"
}
