package profile

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Frames of runtimes come out of a stack as they were put in, in their places.
func TestRuntimeFramesOfStacks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test is to be repeatable
	var table stackTable
	table.forget()
	var encoded []string
	var all [][]decodedFrame
	var usersOf []int
	for range 2000 {
		var user []uint64
		var want []decodedFrame
		for range random.IntN(8) {
			if random.IntN(2) == 0 {
				w := record.NewRuntimeWord(record.RuntimeCPython, random.Uint32N(4), random.Uint32N(3))
				object := 0x7f0000000000 + 64*random.Uint64N(4)
				user = append(user, uint64(w), object)
				want = append(want, decodedFrame{Runtime, uint64(w), object})
				continue
			}
			addr := []uint64{0xffffffffff600000, 0x400000, 0x7f0000001000, 0x7f0000001100, 1}[random.IntN(5)]
			want = append(want, decodedFrame{kind: User, addr: inCall(addr, len(user))})
			user = append(user, addr)
		}
		users := len(want)
		var kernel []uint64
		for range random.IntN(4) {
			kernel = append(kernel, 0xffffffff81000000+random.Uint64N(3))
		}
		for i := len(kernel) - 1; i >= 0; i-- {
			want = slices.Insert(want, 0, decodedFrame{kind: Kernel, addr: inCall(kernel[i], i)})
		}
		id, known := table.find(kernel, user)
		if !known {
			id, _ = table.add()
			encoded, all, usersOf = append(encoded, table.stacks[id]), append(all, want), append(usersOf, users)
		}
		d := decodeStack(table.stacks[id])
		require.Equal(t, len(want), d.left())
		for i := range want {
			require.Equal(t, want[len(want)-1-i], d.next())
		}
	}
	// What two stacks have in common of user frames is skipped, frame by frame.
	for range 50_000 {
		i, j := random.IntN(len(all)), random.IntN(len(all))
		n := 0
		for n < min(usersOf[i], usersOf[j]) && all[i][len(all[i])-1-n] == all[j][len(all[j])-1-n] {
			n++
		}
		d := decodeStack(encoded[i])
		require.LessOrEqual(t, d.skip(decodeStack(encoded[j])), n)
		require.LessOrEqual(t, len(all[i])-n, d.left())
		if d.left() > 0 {
			require.Equal(t, all[i][d.left()-1], d.next())
		}
	}
}
