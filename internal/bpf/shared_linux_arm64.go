package bpf

import "github.com/cilium/ebpf"

// ofArch adds to what ofOffCPU returns.
func (m *olderMaps) ofArch(shared map[string]*ebpf.Map) { shared[offcpuMapExecuted] = m.Executed }
