package customlabelsreceiver

const (
	// secondBytes of a sample and CPU is what the ring buffer has room for where it is not
	// configured: a second of samples with stacks of 200 frames and some labels.
	secondBytes = 2 << 10
	// The bounds of that.
	lowRingBytes  = 1 << 20
	highRingBytes = 32 << 20
	// cpuMapBytes is what other maps have for each CPU, twice with off-CPU profiles.
	cpuMapBytes = 32 << 10
)

// ringBytes returns the size of the ring buffer on a host of so many CPUs: what is
// configured, or what fits the rate of samples and max_bpf_map_bytes.
func (c *Config) ringBytes(cpus int) int {
	if c.RingBufferBytes != 0 {
		return c.RingBufferBytes
	}
	want := min(max(c.SamplesPerSecond*cpus*secondBytes, lowRingBytes), highRingBytes)
	perCPU := cpuMapBytes
	if c.OffCPUThreshold > 0 {
		perCPU *= 2
	}
	room := max(c.MaxBPFMapBytes-c.fixedMapBytes()-cpus*perCPU, minRingBufferBytes)
	n := highRingBytes
	for n/2 >= want || n > room {
		n /= 2
	}
	return n
}

// fixedMapBytes is the part of max_bpf_map_bytes that is not for the ring buffer.
func (c *Config) fixedMapBytes() int { return offCPURingBytes(c) + tableBytes(c) + restMapBytes }

// tableBytes is the memory of unwind rows.
func tableBytes(c *Config) int {
	if c.Unwind != UnwindRows {
		return 0
	}
	return c.MaxUnwindBytes
}

func offCPURingBytes(c *Config) int {
	if c.OffCPUThreshold == 0 {
		return 0
	}
	return c.OffCPURingBufferBytes
}
