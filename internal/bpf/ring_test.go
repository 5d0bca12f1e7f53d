//go:build linux && (amd64 || arm64)

package bpf

import (
	"bytes"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/wakeup"
)

// A writtenRing is one whose records a test writes, as programs do.
type writtenRing struct {
	*ring
	wake    *os.File
	written []byte
}

func newWrittenRing(t *testing.T, delay time.Duration) *writtenRing {
	t.Helper()
	page, size := os.Getpagesize(), 1<<20
	fd, err := unix.MemfdCreate("ring", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Ftruncate(fd, int64(2*page+2*size)))
	memory, err := mapRing(fd, size)
	require.NoError(t, err)
	w := &writtenRing{}
	w.written, err = unix.Mmap(fd, int64(page), page+size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	require.NoError(t, err)
	w.wake = os.NewFile(uintptr(event), "wake-ups")
	waiter, err := wakeup.New(delay, event)
	require.NoError(t, err)
	w.ring = newRingOf(memory, waiter, 1)
	t.Cleanup(func() {
		require.NoError(t, w.close())
		require.NoError(t, w.close(), "twice")
		require.NoError(t, w.wake.Close())
		require.NoError(t, unix.Munmap(w.written))
	})
	return w
}

// reserve begins a record; submit ends it.
func (w *writtenRing) reserve(content []byte) (submit func(wake bool) error) {
	end := (*uint64)(unsafe.Pointer(&w.written[0]))
	record := w.written[os.Getpagesize()+int(*end):]
	length := (*uint32)(unsafe.Pointer(&record[0]))
	atomic.StoreUint32(length, uint32(len(content))|ringBusy)
	atomic.AddUint64(end, uint64(ringHeadBytes+(len(content)+7)&^7))
	return func(wake bool) (err error) {
		copy(record[ringHeadBytes:], content)
		atomic.StoreUint32(length, uint32(len(content)))
		if wake {
			_, err = w.wake.Write([]byte{1, 0, 0, 0, 0, 0, 0, 0})
		}
		return err
	}
}

// A record that is still being written is none yet, and neither are those behind it: the reader waits, and
// is told at each tick that there is nothing. When it is written, all come.
func TestBusyRecord(t *testing.T) {
	for _, size := range []int{1, 8, 96, 500_000} {
		w := newWrittenRing(t, time.Millisecond)
		var raw []byte
		first, second := bytes.Repeat([]byte{1}, size), bytes.Repeat([]byte{2}, size)
		submitFirst := w.reserve(first)
		submitSecond := w.reserve(second)
		require.NoError(t, submitSecond(true))
		for range 3 {
			w.idle = false
			for !w.idle { // two wake-ups at most: the second record's, and a tick's
				require.False(t, w.hasEnough())
				require.NoError(t, w.await())
			}
			require.ErrorIs(t, w.read(&raw), ErrIdle)
		}
		require.NoError(t, submitFirst(false))
		require.NoError(t, w.read(&raw))
		require.Equal(t, first, raw)
		require.NoError(t, w.read(&raw))
		require.Equal(t, second, raw)
		require.Zero(t, w.unreadBytes())
		w.drain()
		require.ErrorIs(t, w.read(&raw), ErrDrained)
	}
}

// Who submits a record ends the wait for it.
func TestBusyRecordWakes(t *testing.T) {
	w := newWrittenRing(t, time.Hour)
	submit := w.reserve([]byte("record"))
	submitted := make(chan error, 1)
	time.AfterFunc(10*time.Millisecond, func() { submitted <- submit(true) })
	var raw []byte
	require.NoError(t, w.read(&raw))
	require.Equal(t, "record", string(raw))
	require.NoError(t, <-submitted)
}

// Drain waits for a record that is being written, as it was there at the call.
func TestDrainBusyRecord(t *testing.T) {
	w := newWrittenRing(t, time.Hour)
	submit := w.reserve([]byte("record"))
	w.drain()
	submitted := make(chan error, 1)
	time.AfterFunc(10*time.Millisecond, func() { submitted <- submit(false) })
	var raw []byte
	err := w.read(&raw)
	for errors.Is(err, ErrIdle) {
		err = w.read(&raw)
	}
	require.NoError(t, err)
	require.Equal(t, "record", string(raw))
	require.ErrorIs(t, w.read(&raw), ErrDrained)
	require.NoError(t, <-submitted)
}

// A record that is never submitted does not hold up the end, nor does it while the ring is drained.
func TestCloseWithBusyRecord(t *testing.T) {
	for _, drains := range []bool{false, true} {
		w := newWrittenRing(t, time.Millisecond)
		w.reserve([]byte("record"))
		if drains {
			w.drain()
		}
		ended := make(chan error, 1)
		go func() {
			var raw []byte
			for {
				if err := w.read(&raw); !errors.Is(err, ErrIdle) {
					ended <- err
					return
				}
			}
		}()
		time.Sleep(20 * time.Millisecond)
		require.NoError(t, w.close())
		require.ErrorIs(t, <-ended, ErrClosed)
		require.ErrorIs(t, w.read(new([]byte)), ErrClosed)
		require.Zero(t, w.unreadBytes())
	}
}
