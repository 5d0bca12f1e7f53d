//go:build linux

package executable

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

const (
	// buildShare bounds the share of one CPU that building rows takes, to one in so many
	// for small files and to as much for large ones: what takes seconds, and waits for a
	// multiple of that, must not hold up what takes milliseconds.
	buildShare = 4
	smallFile  = 8 << 20
	// buildPiece of the CPU time that a file takes is what the files of other users have to wait for.
	// The rest is paid back beside what they take, before more is built for those for whom much was built
	// lately, or for anybody while buildOwed of it is owed.
	buildPiece = int64(500 * time.Millisecond)
	buildOwed  = time.Minute
	// memoryDelay is how long building waits when memory is scarce, before it looks again.
	memoryDelay = time.Second
	// stuckAfter is when the goroutine that builds rows is given up: a file can block whoever
	// reads it.
	stuckAfter = 10 * time.Second
	// maxStuck of them are replaced by new ones; maxStuckOfUser with files that one user's
	// processes wait for.
	maxStuck       = 16
	maxStuckOfUser = 4
	watchGap       = 5 * time.Second // between looks whether one hangs
)

// buildTimes are when small and large files may be built again.
type buildTimes [2]int64

func (b *buildTimes) of(f *File) *int64 {
	if f.key.Size <= smallFile {
		return &b[0]
	}
	return &b[1]
}

// next takes the file that the most sampled processes wait for, of these the smallest,
// among those that may be built now; but first those of users for whom little was built
// lately. If there is none, it says in how many ns there will be, or -1 if none waits.
func (r *Rows) next(times *buildTimes, now int64) (f *File, waitNs int64) {
	owed := int64(r.opts.CPU.DelayAll(budget.Rows))
	r.mu.Lock()
	defer r.mu.Unlock()
	best, bestTurn := -1, int64(0)
	waitNs = -1
	for i, f := range r.wanted {
		turn, again, may := r.shares.turn(f)
		if !may {
			continue
		}
		wait := max(*times.of(f), again) - now
		if turn > 0 {
			wait = max(wait, owed)
		}
		if wait > 0 {
			if waitNs < 0 || wait < waitNs {
				waitNs = wait
			}
			continue
		}
		if best < 0 || turn < bestTurn || turn == bestTurn && f.moreWantedThan(r.wanted[best]) {
			best, bestTurn = i, turn
		}
	}
	if best < 0 {
		return nil, waitNs
	}
	f = r.wanted[best]
	r.shares.choose(&f.rows)
	last := len(r.wanted) - 1
	r.wanted[best] = r.wanted[last]
	r.wanted[last] = nil
	r.wanted = r.wanted[:last]
	return f, 0
}

func (f *File) moreWantedThan(g *File) bool {
	if a, b := len(f.rows.waiting), len(g.rows.waiting); a != b {
		return a > b
	}
	return f.key.Size < g.key.Size
}

// builder is a goroutine that builds rows.
type builder struct {
	sinceNs atomic.Int64         // of the file that it builds, 0: none
	file    atomic.Pointer[File] // that it builds the rows of, until these are settled; swapped under Rows.mu
	uid     atomic.Uint32        // whose process waits for that
	thread  atomic.Int32         // that it runs on
	stuck   atomic.Bool          // given up; ends when its file does
	heldFor uint32               // the user for whom it was given up; guarded by Rows.mu
}

func (b *builder) ended() bool { return b.stuck.Load() && b.sinceNs.Load() == 0 }

// Run builds rows until the context ends, and returns when nothing is being built. It has a
// goroutine of its own for that: a large file takes seconds, which labels need not wait for.
func (r *Rows) Run(ctx context.Context) {
	var builders []*builder
	var running sync.WaitGroup
	hire := func() {
		b := &builder{}
		builders = append(slices.DeleteFunc(builders, (*builder).ended), b)
		running.Go(func() { b.run(ctx, r) })
	}
	hire()
	watch := time.NewTicker(watchGap)
	defer watch.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-watch.C:
			if r.hangs(builders) {
				hire()
			}
		}
	}
	running.Wait()
}

// hangs reports whether the newest of the builders is to be replaced: not because it waits for a CPU.
func (r *Rows) hangs(builders []*builder) bool {
	b := builders[len(builders)-1]
	since := b.sinceNs.Load()
	if since == 0 || r.opts.Now()-since <= int64(stuckAfter) || !procfs.Blocked(int(b.thread.Load())) {
		return false
	}
	stuck := 0
	for _, other := range builders {
		if other.stuck.Load() && !other.ended() {
			stuck++
		}
	}
	if stuck >= maxStuck {
		return false
	}
	asked, handles, gaveUp := r.giveUp(b, since)
	if !gaveUp {
		return false
	}
	r.counts.stuck.Add(1)
	var at place
	path := ""
	if asked != nil {
		at, path = asked.places.of(b.heldFor), asked.path
	}
	r.opts.Logger.Warn("A file whose unwind rows are read does not answer: the worker that reads it is replaced.",
		zap.String("file", path), zap.Int("pid", at.pid), zap.Uint32("uid", b.heldFor), zap.String("container", at.owner.Container),
		zap.Int("others", stuck))
	r.opts.Changed(handles)
	return true
}

// giveUp counts a builder for the user of its file, unless that has answered by now. Who waits for the file (handles)
// is told: it may answer through another user's process.
func (r *Rows) giveUp(b *builder, since int64) (asked *File, handles []uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b.sinceNs.Load() != since {
		return nil, nil, false
	}
	b.heldFor = b.uid.Load()
	b.stuck.Store(true)
	r.shares.stuck[b.heldFor]++
	f := b.file.Swap(nil)
	if f == nil { // it has none, or has settled it
		return nil, nil, true
	}
	asked = f.rows.asked
	return asked, r.settled(f, r.closedRows()), true
}

// finished notes that a builder is done with its file, and takes it off its user's if it was given up.
func (r *Rows) finished(b *builder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b.sinceNs.Store(0)
	if b.stuck.Load() {
		r.unstick(b.heldFor)
	}
}

func (b *builder) run(ctx context.Context, r *Rows) {
	runtime.LockOSThread() // whose CPU time is counted: on a busy machine, the time that passes is not spent here
	defer runtime.UnlockOSThread()
	b.thread.Store(int32(procfs.Thread()))
	timer := time.NewTimer(0)
	defer timer.Stop()
	var times buildTimes
	for ctx.Err() == nil && !b.stuck.Load() {
		b.sinceNs.Store(max(r.opts.Now(), 1))
		built, waitNs := r.buildNext(ctx, &times, b)
		r.finished(b)
		if built {
			continue
		}
		var pause <-chan time.Time
		if waitNs > 0 {
			timer.Reset(time.Duration(waitNs))
			pause = timer.C
		}
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-pause:
		}
	}
}

// buildNext builds the rows of one file, if one may be built now, and tells b which, and for whose
// process. If not, it says in how many ns that may be, or -1 if none waits.
func (r *Rows) buildNext(ctx context.Context, times *buildTimes, b *builder) (built bool, waitNs int64) {
	r.sweep()
	r.placeSeen()
	if delay := r.delay(); delay > 0 {
		return false, int64(delay)
	}
	f, waitNs := r.next(times, r.opts.Now())
	if f == nil {
		return false, waitNs
	}
	asked, asker, by := r.begin(f, b)
	began := r.cpuTime()
	r.build(ctx, f, asked, asker, b)
	spent := r.cpuTime() - began
	r.spend(by, spent)
	r.pause(by, f, spent)
	piece := min(spent, buildPiece)
	r.opts.CPU.Spend(budget.Rows, time.Duration(piece))
	r.opts.CPU.Defer(budget.Rows, time.Duration(spent-piece))
	*times.of(f) = r.opts.Now() + (buildShare-1)*piece
	return true, 0
}

// begin gives a builder a file, and returns the one to read it from, and the process and the user that want that.
func (r *Rows) begin(f *File, b *builder) (asked *File, asker Asker, by uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b.file.Store(f)
	b.uid.Store(f.rows.uid)
	return f.rows.asked, f.rows.by, f.rows.uid
}

// threadTime is the CPU time of this thread, in ns.
func threadTime() int64 { return budget.Clock(unix.CLOCK_THREAD_CPUTIME_ID) }

// Build builds the rows of the most wanted file now, and reports whether there was one. Run
// does so by itself, as far as its share of the CPUs allows.
func (r *Rows) Build() bool {
	runtime.LockOSThread() // as run does
	defer runtime.UnlockOSThread()
	built, _ := r.buildNext(context.Background(), &buildTimes{}, &builder{})
	return built
}

// delay is how long building has to wait for CPU time or for memory.
func (r *Rows) delay() time.Duration {
	if r.waiting() == 0 {
		return 0
	}
	if r.opts.Memory.Pressure() >= budget.Scarce {
		return memoryDelay
	}
	if r.opts.CPU.Deferred(budget.Rows) > buildOwed {
		return memoryDelay
	}
	return r.opts.CPU.Delay(budget.Rows)
}
