package symbol

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// program is a Go program whose files count while they are open. Once its functions are known, closing
// one waits.
type program struct {
	opener
	open  *atomic.Int32
	close chan struct{} // nil: nothing waits
}

type programContents struct {
	Contents
	p     *program
	waits bool
}

func (p *program) Open() (Contents, int64, error) {
	f, size, err := p.opener.Open()
	p.open.Add(1)
	return programContents{f, p, p.close != nil && p.opens.Load() > 1}, size, err
}

func (c programContents) Close() error {
	if c.waits {
		<-c.p.close
	}
	c.p.open.Add(-1)
	return c.Contents.Close()
}

// Of many Go programs a few stay open, those used last; their memory counts until they are closed.
func TestGoFilesBounded(t *testing.T) {
	path, table, r := goProgram(t, "tables-static")
	synctest.Test(t, func(t *testing.T) {
		const programs = 5 * maxOpenGo
		c := NewCache[int](CacheOptions{Wait: time.Hour})
		var open atomic.Int32
		var all [programs]*program
		look := func(i int, vaddr uint64) {
			frames, _ := c.Lookup(nil, i, all[i], vaddr)
			want, err := r.Frames(nil, vaddr)
			require.NoError(t, err)
			require.Len(t, frames, len(want))
			for n, f := range want {
				require.Equal(t, f.Function, frames[n].Name)
			}
			synctest.Wait()
			require.LessOrEqual(t, open.Load(), int32(maxOpenGo))
			require.Len(t, c.open, int(open.Load()))
			bytes := 0
			for element := c.order.Front(); element != nil; element = element.Next() {
				bytes += element.Value.(*cached[int]).size()
			}
			for _, l := range c.open {
				bytes += l.file.reader.Bytes()
			}
			require.Equal(t, bytes, c.Stats().Bytes)
		}
		for i := range all {
			all[i] = &program{opener: opener{path: path}, open: &open}
			look(i, table.Start)
		}
		opens := func(i int) int { return int(all[i].opens.Load()) }
		for i := range all {
			look(i, table.Start+1000)
			require.Equal(t, 3, opens(i), "it was closed meanwhile")
		}
		for i := programs - maxOpenGo; i < programs; i++ {
			look(i, table.Start+2000)
			require.Equal(t, 3, opens(i), "those used last are open")
		}
		look(programs-maxOpenGo, table.Start+3000)
		look(0, table.Start+3000)
		look(programs-maxOpenGo, table.Start+4000)
		require.Equal(t, 3, opens(programs-maxOpenGo), "it was used since the others were")
		look(programs-maxOpenGo+1, table.Start+4000)
		require.Equal(t, 4, opens(programs-maxOpenGo+1))
		c.CloseFiles()
		synctest.Wait()
		require.Zero(t, open.Load())
		require.Empty(t, c.open)
		require.Empty(t, c.reading.now)
	})
}

// A file that never closes keeps nobody waiting, and an owner has no more of them than places.
func TestGoFilesNeverClose(t *testing.T) {
	path, table, _ := goProgram(t, "tables-static")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := NewCache[string](CacheOptions{Wait: time.Hour, blocked: func(int) bool { return true }})
		hang := make(chan struct{})
		var open atomic.Int32
		named := func(name string, owner Owner, closes bool) bool {
			p := &program{opener: opener{path: path, owner: owner}, open: &open}
			if !closes {
				p.close = hang
			}
			frames, _ := c.Lookup(nil, name, p, table.Start)
			return len(frames) > 0
		}
		hostile := Owner{UID: 1}
		for i := range 3 * maxOpenGo { // those used before are closed
			named("hostile"+strconv.Itoa(i), hostile, false)
			c.CloseFiles()
			synctest.Wait()
		}
		require.EqualValues(t, maxOwnerReads, open.Load())
		require.Len(t, c.reading.now, maxOwnerReads)
		require.NotZero(t, c.Stats().Refused)
		for i := range 3 * maxOpenGo {
			require.True(t, named("other"+strconv.Itoa(i), Owner{UID: 2}, true))
		}
		other := Owner{UID: 3}
		for i := range maxOpenGo + maxOwnerReads {
			require.True(t, named("another"+strconv.Itoa(i), other, false), "those used before are being closed")
			synctest.Wait()
		}
		require.False(t, named("one more", other, false))
		c.CloseFiles()
		synctest.Wait()
		require.Zero(t, time.Since(began))
		require.EqualValues(t, maxOwnerReads+maxOpenGo+maxOwnerReads, open.Load())

		time.Sleep(hungAfter)
		require.Len(t, c.Hung(), 2*maxOwnerReads+1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorContains(t, c.Close(ctx), "files are still being read")
		close(hang)
		require.NoError(t, c.Close(t.Context()))
		require.Zero(t, open.Load())
		require.Empty(t, c.reading.now)
	})
}
