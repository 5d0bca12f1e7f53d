package paired

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// A machine is what a run was measured on.
type machine struct {
	Date      time.Time `json:"date"`
	Commit    string    `json:"commit"`
	Kernel    string    `json:"kernel"`
	Arch      string    `json:"arch"`
	Processor string    `json:"processor"`
	CPUs      int       `json:"cpus"`
	Load      string    `json:"load"` // averages over 1, 5 and 15 minutes
}

const unknown = "unknown"

func thisMachine() machine {
	return machine{
		Date: time.Now().UTC(), Commit: commit(), Kernel: textOf("/proc/sys/kernel/osrelease"), Arch: runtime.GOARCH,
		Processor: processor(), CPUs: runtime.NumCPU(), Load: loadAverage(),
	}
}

func (m machine) String() string {
	return fmt.Sprintf("%s, commit %s: %d CPUs (%s), %s, kernel %s, load before the start %s",
		m.Date.Format(time.RFC3339), m.Commit, m.CPUs, m.Processor, m.Arch, m.Kernel, m.Load)
}

// commit is that of the working directory, marked if files differ from it.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return unknown
	}
	return strings.TrimSpace(string(out))
}

func processor() string {
	for line := range strings.Lines(textOf("/proc/cpuinfo")) {
		if name, model, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return unknown
}

// loadAverage leaves out the number of tasks and the last PID.
func loadAverage() string {
	fields := strings.Fields(textOf("/proc/loadavg"))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

// textOf is a file of /proc, trimmed.
func textOf(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return unknown
	}
	return strings.TrimSpace(string(b))
}
