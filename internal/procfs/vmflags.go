package procfs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// VMFlag is one of the flags that the kernel shows of a mapping, two letters; see the proc
// manual page.
type VMFlag string

// DontFork is what madvise(MADV_DONTFORK) sets.
const DontFork VMFlag = "dc"

// VMFlags returns the flags of the mapping that starts at an address. ok is false if there is
// none, or if the kernel shows no flags. What it reads is bounded like Mappings; the
// kernel takes a while to make it for a process with much memory.
func (f FS) VMFlags(pid int, start uint64) (flags []VMFlag, ok bool, err error) {
	file, err := f.open(pid, "smaps")
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	return readVMFlags(file, start)
}

func readVMFlags(r io.Reader, start uint64) (flags []VMFlag, ok bool, err error) {
	br := bufio.NewReaderSize(io.LimitReader(r, maxMapsBytes), maxMapsLine)
	prefix := fmt.Sprintf("%08x-", start) // as /proc/PID/maps has it
	found := false
	for {
		line, _, err := readLine(br)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, false, fmt.Errorf("read flags of mappings: %w", gone(err))
		}
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil, false, nil
		}
		text := string(line)
		switch {
		case strings.HasPrefix(text, prefix):
			found = true
		case found && strings.HasPrefix(text, "VmFlags:"):
			for _, flag := range strings.Fields(text)[1:] {
				flags = append(flags, VMFlag(flag))
			}
			return slices.Clip(flags), true, nil
		}
	}
}
