//go:build linux

package process

import "github.com/customlabels/otelcol-customlabels/internal/procfs"

// Thread returns a living thread of a process: its leader, or another one if the
// leader has exited. It makes sure that the PID is still that process's; whoever reads
// /proc by it asks again afterwards. It reads /proc.
func (r *reader) Thread(p *Process) (tid int, err error) {
	if p.pid == 0 {
		return 0, procfs.ErrNoProcess
	}
	tid, _, err = r.identify(p.id, p.pid)
	return tid, err
}
