package bpf

import "github.com/cilium/ebpf"

func (*olderMaps) ofArch(map[string]*ebpf.Map) {}
