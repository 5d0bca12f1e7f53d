//go:build linux

package labelsource

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// The program is first, then what was there before, as it was, then what is new, from above.
func TestImagesInOrder(t *testing.T) {
	var files [6]*executable.File
	for i := range files {
		files[i] = executable.NewFile(procfs.FileID{Inode: uint64(i)}, "", executable.Facts{Program: i == 2}, nil)
	}
	at := func(inode, bias uint64) image { return image{file: files[inode], bias: bias} }
	const program = 3
	env := &environment{Process: &Process{Program: procfs.FileID{Inode: program}}}
	order := func(before []image, images ...image) []image {
		var keys Order
		for _, im := range before {
			keys = append(keys, im.key())
		}
		return inOrder(images, keys, env)
	}
	first := order(nil, at(1, 0x1000), at(program, 0x2000), at(2, 0x3000), at(4, 0x4000))
	require.Equal(t, []image{at(program, 0x2000), at(4, 0x4000), at(2, 0x3000), at(1, 0x1000)}, first)
	require.Equal(t, []image{at(program, 0x2000), at(4, 0x4000), at(1, 0x1000), at(2, 0x8000), at(5, 0x800)},
		order(first, at(5, 0x800), at(1, 0x1000), at(program, 0x2000), at(4, 0x4000), at(2, 0x8000)),
		"one that was loaded again elsewhere is new")
	linked := files[1].ID()
	linked.CtimeNs++
	anew := image{file: executable.NewFile(linked, "", executable.Facts{}, nil), bias: 0x1000}
	require.Equal(t, []image{anew, at(5, 0x8000)}, order(first, anew, at(5, 0x8000)), "a file that was read anew is the same")
	require.Equal(t, []image{at(2, 0x3000), at(1, 0x1000)}, order(first, at(1, 0x1000), at(2, 0x3000), at(1, 0x1000)), "each once")
	env.Program, env.byLoader = procfs.FileID{Inode: 5}, true
	require.Equal(t, []image{at(2, 0x3000), at(5, 0x5000), at(4, 0x4000), at(1, 0x1000)},
		order(nil, at(1, 0x1000), at(2, 0x3000), at(4, 0x4000), at(5, 0x5000)), "the program that a loader was started with")
}

// Only a process that was not looked at yet goes by the order of another one.
func TestBeginsOnce(t *testing.T) {
	var r Resolver
	first, second := Order{{inode: 1}}, Order{{inode: 2}}
	r.Begin(first)
	r.Begin(second)
	require.Equal(t, first, r.Order())
}
