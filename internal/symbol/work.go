package symbol

import (
	"runtime"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

func (opts *CacheOptions) busy(of Owner) bool { return opts.Busy != nil && opts.Busy(of.UID) }

// work reads something.
func (opts *CacheOptions) work(one *read, read func()) {
	opts.spend(one.owner.UID, func() {
		runtime.LockOSThread() // which may block meanwhile
		defer runtime.UnlockOSThread()
		one.thread.Store(int32(procfs.Thread()))
		read()
	})
}

// spend does something for a user.
func (opts *CacheOptions) spend(uid uint32, do func()) {
	if opts.Work == nil {
		do()
		return
	}
	opts.Work(uid, do)
}

// Yield drops files until they take so many bytes less, and returns how many it has
// dropped. Only what is known of the file used last stays.
func (c *Cache[K]) Yield(bytes int) (dropped int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.order.Len()
	c.shrinkTo(max(c.bytes-bytes, 0))
	return before - c.order.Len()
}

// Yield drops perf maps like Cache.Yield.
func (c *PerfMaps[K]) Yield(bytes int) (dropped int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.order.Len()
	c.shrinkTo(max(c.bytes-bytes, 0))
	return before - c.order.Len()
}

// Bytes returns the memory that the kernel's functions take, roughly.
func (k *Kernel) Bytes() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.symbols.bytes() + k.memo.bytes()
}
