//go:build linux

package process

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// saidBy are the lines about a user's processes and files that begin with a text.
func saidBy(logs *observer.ObservedLogs, uid uint32, text string) *observer.ObservedLogs {
	return logs.FilterMessageSnippet(text).FilterField(zap.Uint32("uid", uid))
}

// A user whose processes all have something that is not read does not fill the log with it, nor keep another user's, or
// other lines, out of it. All of it is counted.
func TestLinesOfUser(t *testing.T) {
	const processes, user, other = 100, 7, 8
	for name, tc := range map[string]struct {
		text          string
		maps, environ string
	}{
		"context":     {text: "A process context cannot be read.", maps: contextMaps},
		"environment": {text: "Not all of the resource", maps: noContextMaps, environ: "OTEL_RESOURCE_ATTRIBUTES=a=b,c\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			core, logs := observer.New(zap.InfoLevel)
			f := newFake(t, func(o *Options) { o.Environment, o.Logger = true, zap.New(core) })
			f.opts.memory = func(int) tlsresolve.Memory { return contextMemory{} }
			enter := func(pid int, uid uint32) {
				f.image(pid, 500, "/bin/one")
				f.write(pid, "status", fmt.Sprintf("Uid:\t%d\t%[1]d\t%[1]d\t%[1]d\nNSpid:\t%d\n", uid, pid))
				f.write(pid, "maps", tc.maps)
				f.write(pid, "environ", tc.environ)
				f.HandleEvent(exists(numbered(pid)))
				f.work()
			}
			for pid := range processes {
				enter(pid+1, user)
			}
			said := saidBy(logs, user, tc.text)
			require.Equal(t, maxUserLines, said.Len())
			for i, line := range said.All() {
				require.Equal(t, i == maxUserLines-1, line.Message != said.All()[0].Message, line.Message)
			}
			require.Contains(t, said.All()[maxUserLines-1].Message, "Further ones")
			once := f.Stats().ContextErrors / processes
			require.NotZero(t, once)
			require.Equal(t, once*processes, f.Stats().ContextErrors)
			enter(processes+1, other)
			require.Equal(t, 1, saidBy(logs, other, tc.text).Len())
			require.Equal(t, once*(processes+1), f.Stats().ContextErrors)
			f.say(executable.Owner{UID: user}, lineSource, "Something else.")
			require.Equal(t, 1, saidBy(logs, user, "Something else.").Len())
		})
	}
}

// The same for a user who has files that are new again and again.
func TestLinesOfFiles(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	f := newFake(t, func(o *Options) { o.Logger = zap.New(core) })
	files := map[int]*executable.File{}
	see := func(n int, uid uint32) {
		file := files[n]
		if file == nil {
			file = executable.NewFile(procfs.FileID{Inode: uint64(n)}, fmt.Sprint("/file", n), executable.Facts{}, nil)
			files[n] = file
		}
		f.explain(&look{owner: executable.Owner{UID: uid}, info: Info{
			Mappings: []executable.Mapping{{File: file}},
			Sources:  []labelsource.Status{{Path: file.Path(), ABI: record.ABIV1, State: labelsource.Unreadable}},
		}})
	}
	for n := range 100 {
		see(n, 7)
	}
	see(100, 8)
	see(99, 8) // of which user 7 had no line any more
	see(99, 9)
	const text = "A label source cannot be read."
	require.Equal(t, maxUserLines, saidBy(logs, 7, text).Len())
	require.Equal(t, 2, saidBy(logs, 8, text).Len())
	require.Zero(t, saidBy(logs, 9, text).Len(), "once of a file")
}

// So are they of language runtimes, which are counted once, whether there is a line or not.
func TestLinesOfRuntimes(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	f := newFake(t, func(o *Options) { o.Logger, o.Runtimes = zap.New(core), [record.NumRuntimes]bool{true} })
	files := map[int]*executable.File{}
	see := func(n int, uid uint32) {
		if files[n] == nil {
			files[n] = executable.NewFile(procfs.FileID{Inode: uint64(n)}, fmt.Sprint("/file", n), executable.Facts{}, nil)
		}
		f.explainRuntime(executable.Owner{UID: uid}, langruntime.ErrUnsupported, &executable.Mapping{File: files[n]})
	}
	for n := range 100 {
		see(n, 7)
	}
	for range 2 {
		see(99, 8)
		see(98, 9)
	}
	const text = "The functions of a language runtime are not known: its stacks have native frames only."
	require.Equal(t, maxUserLines, saidBy(logs, 7, text).Len())
	require.Equal(t, 1, saidBy(logs, 8, text).Len())
	require.Equal(t, 1, saidBy(logs, 9, text).Len())
	require.EqualValues(t, 100, f.counts.runtimesUnsupported.Load())
}

// Users without a place have lines together.
func TestLinesRoom(t *testing.T) {
	var l lines
	for uid := range uint32(maxLineUsers) {
		require.True(t, l.room(uid, lineSource))
		l.next(uid, lineSource)
	}
	for range maxUserLines {
		require.True(t, l.room(maxLineUsers, lineSource))
		l.next(maxLineUsers, lineSource)
	}
	require.False(t, l.room(maxLineUsers+1, lineSource))
	require.True(t, l.room(maxLineUsers+1, lineRuntime))
	require.True(t, l.room(0, lineSource))
}

// However many users there are, lines are bounded.
func TestLinesOfManyUsers(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	f := newFake(t, func(o *Options) { o.Logger = zap.New(core) })
	const users = 2 * maxLineUsers
	for range 2 * maxUserLines {
		for uid := range uint32(users) {
			f.say(executable.Owner{UID: uid, Container: "c"}, lineSource, "Something.")
		}
	}
	require.Equal(t, (maxLineUsers+1)*maxUserLines, logs.Len())
	require.Equal(t, maxUserLines, logs.FilterField(zap.Bool("shared_user", true)).Len())
	require.Len(t, f.lines.users, maxLineUsers)
	require.Equal(t, "c", logs.All()[0].ContextMap()["container"])
}
