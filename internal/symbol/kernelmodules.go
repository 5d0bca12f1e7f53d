package symbol

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"os"
	"strconv"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

const (
	// maxModulesBytes bounds what is read of /proc/modules; 200 modules take 16 KiB.
	maxModulesBytes = 1 << 20
	// maxModules bounds the number of names of modules.
	maxModules = 1<<16 - 1
	// maxKernelFunctionBytes bounds how far a function of the kernel itself may reach. Where the
	// next one begins, it has ended: what matters is the last one, where the end of the kernel's
	// text is not known.
	maxKernelFunctionBytes = 1 << 20
	// maxModuleFunctionBytes is the same for modules, BPF programs and what else is loaded: behind
	// the last function of one, something else may be loaded at any time. Few functions are as
	// large: a BPF program of some ten thousand instructions. What is further in has no name.
	maxModuleFunctionBytes = 64 << 10
)

// codeRange is where code lies; without any limit that is not known.
type codeRange struct {
	base, limit uint64 // limit exclusive
}

// loadedModule is a line of /proc/modules. Its range is that of the module's code and, behind
// that, up to all of its data. base is 0 where addresses are hidden.
type loadedModule struct {
	name       string
	base, size uint64
}

// readModules tells which modules the kernel has loaded. What else /proc/modules has of them,
// such as how often each is used, changes all the time.
func readModules(fs procfs.FS) ([]loadedModule, error) {
	file, err := os.Open(cmp.Or(fs.Root, "/proc") + "/modules")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var all []loadedModule
	lines := bufio.NewScanner(io.LimitReader(file, maxModulesBytes))
	for lines.Scan() {
		if m, ok := parseModule(lines.Bytes()); ok {
			all = append(all, m)
		}
	}
	return all, lines.Err()
}

// parseModule reads "name size uses users state address", and marks behind that.
func parseModule(line []byte) (loadedModule, bool) {
	words := bytes.Fields(line)
	if len(words) < 6 {
		return loadedModule{}, false
	}
	size, err1 := strconv.ParseUint(string(words[1]), 10, 32)
	base, err2 := strconv.ParseUint(string(words[5]), 0, 64)
	return loadedModule{string(words[0]), base, size}, err1 == nil && err2 == nil
}

// kernelModule is what has functions: the kernel itself, whose name is "", modules, "bpf".
type kernelModule struct {
	name string
	code codeRange
}

// reach returns how many bytes a function that begins at start has at the most.
func (m *kernelModule) reach(start uint64) uint64 {
	most := uint64(maxModuleFunctionBytes)
	if m.name == "" {
		most = maxKernelFunctionBytes
	}
	switch {
	case m.code.limit == 0:
		return most
	case m.code.base <= start && start < m.code.limit:
		return min(most, m.code.limit-start)
	case m.name == "":
		return 0 // it ran at boot, and is gone, or it marks the end of the text
	}
	// Its module's place is hidden, or it runs once, when that is loaded: such code lies elsewhere.
	return most
}

// modules gives modules indexes; the first is the kernel itself.
type modules struct {
	list    []kernelModule
	indexes map[string]uint32
}

func newModules() modules {
	return modules{list: []kernelModule{{}}, indexes: map[string]uint32{"": 0}}
}

// index returns the index of a module, given as "[name]".
func (m *modules) index(bracketed []byte) uint64 {
	name := bytes.Trim(bracketed, "[]")
	i, ok := m.indexes[string(name)]
	if !ok {
		if len(m.list) == maxModules {
			return 0
		}
		i = uint32(len(m.list))
		m.list = append(m.list, kernelModule{name: string(name)})
		m.indexes[string(name)] = i
	}
	return uint64(i)
}

// locate tells modules where they are.
func (m *modules) locate(loaded []loadedModule) {
	for _, l := range loaded {
		if i, ok := m.indexes[l.name]; ok {
			m.list[i].code = codeRange{l.base, l.base + l.size}
		}
	}
}

// mark takes note of the symbols that tell where the kernel's own text begins and ends. On
// aarch64 the end is not in the text.
func (m *modules) mark(name []byte, addr uint64) {
	switch string(name) {
	case "_stext":
		m.list[0].code.base = addr
	case "_etext":
		m.list[0].code.limit = addr
	}
}
