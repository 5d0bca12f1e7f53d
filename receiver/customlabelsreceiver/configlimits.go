package customlabelsreceiver

import (
	"errors"
	"fmt"
)

// batchWeight times max_batch_bytes must find room in max_memory_bytes: one batch that
// fills and one that is handed over, each twice for the garbage collector.
const batchWeight = 4

// partsInBounds reports whether what must fit into the limits is itself within bounds.
func (c *Config) partsInBounds() bool {
	return errors.Join(
		within("", c.MaxBatchBytes, minBatchBytes, maxBatchBytes),
		within("", c.MaxSymbolBytes, minSymbolBytes, maxSymbolBytes),
		within("", c.MaxUnwindBytes, minUnwindBytes, maxUnwindBytes),
		within("", c.leastRingBytes(), minRingBufferBytes, maxRingBufferBytes),
		within("", c.OffCPURingBufferBytes, minRingBufferBytes, maxRingBufferBytes),
	) == nil
}

// validateLimits checks the limits of the whole receiver, and that its parts fit.
func (c *Config) validateLimits() error {
	err := errors.Join(
		within("max_memory_bytes", c.MaxMemoryBytes, minMemoryBytes, maxMemoryBytes),
		within("max_bpf_map_bytes", c.MaxBPFMapBytes, minBPFMapBytes, maxBPFMapBytes),
		within("max_background_cpu", c.MaxBackgroundCPU, minBackgroundCPU, maxBackgroundCPU),
	)
	if err != nil || !c.partsInBounds() {
		return err // what is wrong with a part is said of that
	}
	var errs []error
	symbols := 0
	if c.Symbolize == SymbolizeLocal {
		symbols = c.MaxSymbolBytes
	}
	if need := symbols + batchWeight*c.MaxBatchBytes; need > c.MaxMemoryBytes {
		errs = append(errs, fmt.Errorf("max_memory_bytes %d must be at least max_symbol_bytes + %d * max_batch_bytes = %d: raise it, or lower max_batch_bytes (%d) or max_symbol_bytes (%d)",
			c.MaxMemoryBytes, batchWeight, need, c.MaxBatchBytes, symbols))
	}
	o := c.options()
	if maps := o.MapBytes(); maps.Sum() > c.MaxBPFMapBytes {
		errs = append(errs, fmt.Errorf("max_bpf_map_bytes %d must be at least %d, for ring buffers %d, max_unwind_bytes %d and the rest %d: raise it, or lower ring_buffer_bytes or max_unwind_bytes",
			c.MaxBPFMapBytes, maps.Sum(), maps.Ring+maps.OffCPURing, maps.Unwind, maps.Rest))
	}
	return errors.Join(errs...)
}

// leastRingBytes is what the ring buffer must have room for, however many CPUs there are.
func (c *Config) leastRingBytes() int {
	if c.RingBufferBytes == 0 {
		return minRingBufferBytes
	}
	return c.RingBufferBytes
}
