package guest

// ConfigPath is where the guest finds its Config.
const ConfigPath = "/vmrun.json"

// Dir is the working directory of the programs, OutDir what comes back to the host.
const (
	Dir    = "/guest"
	OutDir = "/out"
)

// Up is the first line on the control port: the guest is in user space.
const Up = "up"

// Config says what to run in the guest.
type Config struct {
	Commands []Command // one after the other
}

// Command is a program to run.
type Command struct {
	Args []string // the program's path first
	Env  []string // all of its environment
}

// Result is the second line on the control port. A tar of OutDir is on the NVMe disk
// where the kernel has that driver built in (Debian's cloud kernels: 60 MB/s), else it
// follows on the port (0.35 MB/s).
type Result struct {
	Release  string   // of the kernel, as uname says
	PageSize int      // bytes
	Boot     float64  // guest seconds from the kernel's start to user space
	Programs []Status // one a command, unless Err
	Disk     bool     // the tar is on the disk
	Err      string   // why there is no result, when not empty
	Boots    int      // attempts that it took, counted by vmrun
}

// Status is how a program ended.
type Status struct {
	Exit    int
	Signal  int     // 0: none
	Seconds float64 // guest clock
}

// Code is what a shell would say: the program's own code, or 128 + signal.
func (s Status) Code() int {
	if s.Signal != 0 {
		return 128 + s.Signal
	}
	return s.Exit
}

// Code is that of the first program that failed, or 0.
func (r *Result) Code() int {
	for _, p := range r.Programs {
		if c := p.Code(); c != 0 {
			return c
		}
	}
	return 0
}
