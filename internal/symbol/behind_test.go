package symbol

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A file that is never read through one user's process is read through another's when it was waited for, once
// for each of a few users.
func TestCacheReadBeside(t *testing.T) {
	path := build(t)
	vaddr := vaddrOf(t, path, "visible")
	synctest.Test(t, func(t *testing.T) {
		c := NewCache[int](CacheOptions{Wait: time.Second, MaxBytes: minTableBytes})
		wait := make(chan struct{})
		hostile := &opener{path: path, wait: wait, owner: Owner{UID: 1}}
		user := &opener{path: path, owner: Owner{UID: 2}}
		name := func(o *opener) string {
			fn, _ := lookup(c, 1, o, vaddr)
			return fn.Name
		}
		require.Empty(t, name(hostile))
		c.CloseFiles()
		require.Equal(t, "visible", name(user))
		require.Equal(t, "visible", name(hostile), "what it says holds for all")
		for i := range 3 {
			lookup(c, 2+i, user, vaddr)
		}
		require.Equal(t, "visible", name(hostile), "not forgotten")
		require.EqualValues(t, 1, hostile.opens.Load())
		require.Len(t, c.reading.now, 1)
		close(wait)
		synctest.Wait()
		require.Equal(t, "visible", name(user))
		for i := range 3 {
			lookup(c, 2+i, user, vaddr)
		}
		require.Equal(t, 1, c.Stats().Files)
		require.Empty(t, c.reading.now)
		c.counted(t)
	})
}

// Of a file that nobody's process answers, so many reads hang and no more, each of another user. The first one that
// is answered has names for all.
func TestCacheReadBesideBounded(t *testing.T) {
	path := build(t)
	vaddr := vaddrOf(t, path, "visible")
	for first := range maxBehind + 1 {
		synctest.Test(t, func(t *testing.T) {
			c := NewCache[int](CacheOptions{Wait: time.Second})
			var users []*opener
			for i := range 2 * maxBehind {
				users = append(users, &opener{path: path, wait: make(chan struct{}), owner: Owner{UID: uint32(i)}})
			}
			for range 10 {
				for _, o := range users {
					_, ok := lookup(c, 1, o, vaddr)
					require.False(t, ok)
					c.CloseFiles()
				}
			}
			for i, o := range users {
				require.Equal(t, i <= maxBehind, o.opens.Load() == 1, "user %d", i)
			}
			close(users[first].wait)
			synctest.Wait()
			for _, o := range users {
				fn, _ := lookup(c, 1, o, vaddr)
				require.Equal(t, "visible", fn.Name)
			}
			c.counted(t)
			for i, o := range users {
				if i != first {
					close(o.wait)
				}
			}
			synctest.Wait()
			fn, _ := lookup(c, 1, users[0], vaddr)
			require.Equal(t, "visible", fn.Name)
			require.Empty(t, c.reading.now)
			e := c.byKey[cacheKey[int]{file: 1}].Value.(*cached[int])
			require.Empty(t, e.behind)
			require.Nil(t, e.before)
			require.Equal(t, e.size(), c.Stats().Bytes)
			c.counted(t)
		})
	}
}

// Who has a file hang does not have it read again when another user's read of it fails.
func TestCacheReadBesideFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCache[int](CacheOptions{Wait: time.Second})
		wait := make(chan struct{})
		hostile := &opener{path: "/nowhere", wait: wait, owner: Owner{UID: 1}}
		other := &opener{path: "/nowhere", owner: Owner{UID: 2}}
		for range 5 {
			lookup(c, 1, hostile, 0)
			c.CloseFiles()
			lookup(c, 1, other, 0)
			time.Sleep(retryAfter)
		}
		require.EqualValues(t, 1, hostile.opens.Load())
		require.EqualValues(t, 5, other.opens.Load())
		close(wait)
		synctest.Wait()
		c.counted(t)
	})
}
