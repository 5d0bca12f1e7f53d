//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Users who run nothing else, of the same group. They are this program's: the tests of another one may
// run at the same time.
var (
	floodUser  = firstUser + 2*uint32(os.Getpid())
	secondUser = floodUser + 1
)

const (
	firstUser = 100_000_000
	bothGroup = 20003
)

// startAs runs a script of the shell as another user and returns its PID.
func startAs(t *testing.T, uid uint32, script string) (pid int) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: uid, Gid: bothGroup}, Pdeathsig: syscall.SIGKILL, Setpgid: true,
	}
	runtime.LockOSThread() // the signal is for the end of this thread
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		runtime.UnlockOSThread()
	})
	return cmd.Process.Pid
}

const spin = "while :; do :; done"

// ringBytes is what a record takes in the ring buffer.
func ringBytes(bytes int) int { return (bytes + ringHeadBytes + 7) &^ 7 }

// awaitDrops waits until samples of a user found no room in its share.
func awaitDrops(t *testing.T, drops func() (map[uint32]uint64, error), uid uint32) {
	t.Helper()
	require.Eventually(t, func() bool {
		byUser, err := drops()
		require.NoError(t, err)
		return byUser[uid] > 100
	}, time.Minute, 10*time.Millisecond, "user %d does not fill its share", uid)
}

// A user who fills its share of a ring buffer that nobody reads leaves another user
// its own; when it has been read, the first one is sampled again.
func TestUserShare(t *testing.T) {
	const ring = 1 << 20
	const share = 1. / 16 // other users may have theirs
	s := newSampler(t, Config{SamplesPerSecond: 10_000, RingBufferBytes: ring, UserShare: share})
	require.NoError(t, s.Start())
	for range runtime.NumCPU() {
		startAs(t, floodUser, spin)
	}
	awaitDrops(t, s.UserDrops, floodUser)
	startAs(t, secondUser, spin)
	awaitDrops(t, s.UserDrops, secondUser)

	var now unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	full := uint64(now.Nano())
	bytes := map[uint32]int{}
	again := map[uint32]bool{}
	visit := func(r *Record) bool {
		if r.TimeNs <= full {
			bytes[r.UID] += ringBytes(len(r.raw))
		} else {
			again[r.UID] = true
		}
		return again[floodUser] && again[secondUser]
	}
	readUntil(t, s, visit)
	limit := int(share * ring)
	for _, uid := range []uint32{floodUser, secondUser} {
		t.Logf("user %d had %d of %d bytes", uid, bytes[uid], limit)
		require.LessOrEqual(t, bytes[uid], limit+2*(runtime.NumCPU()-1)*ringBytes(maxSampleBytes))
		require.Greater(t, bytes[uid], limit-int(unshared(uint64(limit)))-ringBytes(maxSampleBytes))
	}
	drain(t, s, func(*Record) {})
	c, err := s.Counters()
	require.NoError(t, err)
	require.Equal(t, c.Hits, c.Submitted+c.FilteredIdle+c.DroppedRingFull+c.DroppedUserShare+c.DroppedInternal)
	byUser, err := s.UserDrops()
	require.NoError(t, err)
	sum := uint64(0)
	for _, n := range byUser {
		sum += n
	}
	require.Equal(t, c.DroppedUserShare, sum)
}

// A record takes of its user's share what it takes of the ring buffer, and no record goes
// beyond it. A single thread is on one CPU at a time: the account is exact.
func TestUserShareBytes(t *testing.T) {
	const ring = 1 << 20 // other users may have their shares, too
	const share = 1. / 16
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 10_000, RingBufferBytes: ring, UserShare: share})
	require.NoError(t, s.Start())
	// What others have in the ring buffer before is not the user's.
	startAs(t, secondUser, spin)
	awaitDrops(t, s.UserDrops, secondUser)
	startAs(t, floodUser, "exec "+program+" depth-500") // records that seldom fill it to the last byte
	awaitDrops(t, s.UserDrops, floodUser)
	require.NoError(t, s.Stop())
	var account profilerUserShare
	require.NoError(t, s.objs.Users.Lookup(floodUser, &account))
	bytes, records, longest := 0, 0, 0
	drain(t, s, func(r *Record) {
		if r.UID == floodUser {
			records++
			bytes += ringBytes(len(r.raw))
			longest = max(longest, ringBytes(len(r.raw)))
		}
	})
	limit := int(share * ring)
	limit -= int(unshared(uint64(limit))) // others have that
	t.Logf("%d records of %d bytes, limit %d", records, bytes, limit)
	require.EqualValues(t, bytes, account.Older+account.Newer)
	require.LessOrEqual(t, bytes, limit)
	require.Greater(t, bytes, limit-longest)
}

// No account is kept while what is unread is less than what is for all.
func TestNoAccount(t *testing.T) {
	// For all are 4 MiB: a thousand samples have room there, however late they are read.
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 64 << 20, UserShare: 0.5})
	startAs(t, floodUser, spin)
	require.NoError(t, s.Start())
	n := 0
	readUntil(t, s, func(r *Record) bool {
		if r.UID == floodUser {
			n++
		}
		return n == 1000
	})
	var account profilerUserShare
	require.ErrorIs(t, s.objs.Users.Lookup(floodUser, &account), ebpf.ErrKeyNotExist)
}

// A user whose samples have been read has its share again, while others go on to fill theirs.
func TestUserShareRefill(t *testing.T) {
	const ring = 256 << 10
	const share = 0.25
	s := newSampler(t, Config{SamplesPerSecond: 10_000, RingBufferBytes: ring, UserShare: share})
	require.NoError(t, s.Start())
	pid := startAs(t, floodUser, spin)
	startAs(t, secondUser, spin)
	dropped, inARow := uint64(0), 0
	for end := time.Now().Add(10 * time.Minute); ; {
		require.True(t, time.Now().Before(end), "it never got more than half of its share again, and again")
		// What others have written by now may be taken for the user's: the less, the better.
		require.Eventually(t, func() bool { return s.UnreadBytes() > 0 }, time.Minute, time.Millisecond)
		require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
		full := false
		for late := time.Now().Add(2 * time.Second); !full && time.Now().Before(late); time.Sleep(time.Millisecond) {
			byUser, err := s.UserDrops()
			require.NoError(t, err)
			full = byUser[floodUser] > dropped+100
		}
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
		awaitState(t, pid, "T")
		byUser, err := s.UserDrops()
		require.NoError(t, err)
		dropped = byUser[floodUser]
		bytes, before := 0, 0
		s.Drain()
		var r Record
		for err := error(nil); !errors.Is(err, ErrDrained); {
			switch err = s.Read(&r); {
			case err != nil:
			case r.UID == floodUser:
				bytes += ringBytes(len(r.raw))
			case bytes == 0:
				before += ringBytes(len(r.raw))
			}
		}
		t.Logf("%d of %d bytes, behind %d of others", bytes, int(share*ring), before)
		require.LessOrEqual(t, bytes, int(share*ring))
		if !full || before > share*ring/4 { // the machine had no time for the user, or others have filled the ring buffer
			continue
		}
		if inARow++; bytes <= share*ring/2 {
			inARow = 0
		}
		if inARow == 4 {
			return
		}
	}
}

// The smallest share of the smallest ring buffer has room for the longest sample.
func TestLeastUserShare(t *testing.T) {
	least := userLimit(MinUserShare, MinRingBufferBytes)
	require.GreaterOrEqual(t, least-unshared(least), uint64(ringBytes(maxSampleBytes)))
	require.EqualValues(t, 1<<17, unshared(1<<20))
	require.EqualValues(t, 1<<20, userLimit(0.25, 4<<20))
	require.Zero(t, userLimit(0, 4<<20))
	require.Zero(t, userLimit(1, 4<<20))
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: MinRingBufferBytes, UserShare: MinUserShare})
	require.NoError(t, s.Start())
	tgt := startTarget(t, program, "depth-2000")
	readUntil(t, s, func(r *Record) bool { return r.PID == tgt.pid && len(r.UserFrames) == record.MaxUserFrames })
}

// Without a share, one user fills all of the ring buffer.
func TestNoUserShare(t *testing.T) {
	for _, share := range []float64{0, 1} {
		s := newSampler(t, Config{SamplesPerSecond: 10_000, RingBufferBytes: MinRingBufferBytes, UserShare: share})
		require.NoError(t, s.Start())
		startAs(t, floodUser, spin)
		require.Eventually(t, func() bool {
			c, err := s.Counters()
			require.NoError(t, err)
			return c.DroppedRingFull > 100
		}, time.Minute, 10*time.Millisecond)
		c, err := s.Counters()
		require.NoError(t, err)
		require.Zero(t, c.DroppedUserShare)
		require.NoError(t, s.Stop())
	}
}

// The share of switches is one of what is not for returns.
func TestUserShareOfSwitches(t *testing.T) {
	const share = 0.125 // users of whatever else runs leave room for it
	o := newOffCPU(t, OffCPUConfig{Threshold: 1, RingBufferBytes: 1 << 20, UserShare: share})
	require.NoError(t, o.Start())
	startAs(t, floodUser, "while :; do sleep 0; done")
	awaitDrops(t, o.UserDrops, floodUser)
	startAs(t, secondUser, "while :; do sleep 0; done")
	awaitDrops(t, o.UserDrops, secondUser)
	bytes := map[uint32]int{}
	c := drainSwitches(t, o, func(sw *Switch) {
		var r Record
		if !sw.Back && r.Parse(sw.Raw) == nil {
			bytes[r.UID] += ringBytes(len(sw.Raw))
		}
	})
	limit := int(share * (768 << 10))
	t.Logf("%v of %d bytes", bytes, limit)
	require.LessOrEqual(t, bytes[floodUser], limit+2*(runtime.NumCPU()-1)*ringBytes(maxSampleBytes))
	require.NotZero(t, bytes[secondUser])
	require.NotZero(t, c.DroppedUserShare)
	require.Zero(t, c.ReturnsLost)
}

// What makes no sense is refused.
func TestUserShareConfig(t *testing.T) {
	for _, share := range []float64{-0.5, 0.001, 1.5} {
		c := Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes, UserShare: share}
		require.Error(t, c.validate(), share)
		o := OffCPUConfig{Threshold: 1, RingBufferBytes: MinRingBufferBytes, UserShare: share}
		require.Error(t, o.validate(), share)
	}
}
