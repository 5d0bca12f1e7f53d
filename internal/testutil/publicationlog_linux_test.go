// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"os"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// A log of 6 sets, of which the newest is 10: set n was published from 100n on and
// replaced until 100(n+1)+7. The log has 5 to 10, and 5 may be overwritten at the moment.
func publications() *PublicationPart {
	memory := make([]uint64, (publicationPartBytes+6*publicationRecordBytes)/8)
	p := publicationPartAt(unsafe.Slice((*byte)(unsafe.Pointer(&memory[0])), 8*len(memory)))
	for n := uint64(1); n <= 10; n++ {
		p.records[n%6] = publicationRecord{from: 100 * n}
		p.records[(n-1)%6].until = 100*n + 7
	}
	p.header.newest = 10
	return p
}

func TestPublicationAt(t *testing.T) {
	for name, tt := range map[string]struct {
		n, from, to uint64
		at          Publication
		only        bool
		beyond      uint64
	}{
		"in the middle":               {8, 845, 855, PublicationCurrent, true, 0},
		"while it is published":       {8, 800, 804, PublicationCurrent, false, 0},
		"while it is replaced":        {8, 902, 906, PublicationCurrent, false, 0},
		"just before, within error":   {8, 792, 802, PublicationCurrent, false, 3},
		"just after, within error":    {8, 906, 916, PublicationCurrent, false, 4},
		"the one before was current":  {8, 908, 912, PublicationPast, false, 0},
		"the one after was current":   {8, 790, 799, PublicationFuture, false, 0},
		"still current":               {10, 1500, 1600, PublicationCurrent, true, 0},
		"not published":               {11, 1500, 1600, PublicationFuture, false, 0},
		"none":                        {0, 1500, 1600, PublicationFuture, false, 0},
		"the oldest that is kept":     {6, 650, 655, PublicationCurrent, false, 0}, // of the one before nothing is known
		"overwritten, at its time":    {4, 450, 455, PublicationForgotten, false, 0},
		"overwritten, at a later one": {4, 950, 955, PublicationPast, false, 0},
	} {
		at, only, beyond := publications().At(tt.n, tt.from, tt.to)
		require.Equal(t, tt.at, at, name)
		require.Equal(t, tt.only, only, name)
		require.Equal(t, tt.beyond, beyond, name)
	}
}

// The log that a writer keeps is what its threads publish, in order.
func TestPublicationLogOfWriter(t *testing.T) {
	log := NewPublicationLog(t, 2, 1000)
	w := Start(t, "writer-v1-exe", "fidelity", "--threads", "2", "--log", log.Path(), "--print-variables")
	require.Len(t, w.Variables, 2)
	for _, v := range w.Variables { // each of them has published once when it is ready
		require.Eventually(t, func() bool {
			p := log.Part(uint64(v.TID))
			return p != nil && atomic.LoadUint64(&p.header.newest) > 2
		}, time.Minute, time.Millisecond)
	}
	w.Stop()
	for _, v := range w.Variables {
		p := log.Part(uint64(v.TID))
		require.NotNil(t, p)
		newest := p.header.newest
		for n := newest - min(newest-1, 500); n < newest; n++ {
			this, next := p.read(n), p.read(n+1)
			require.Less(t, this.from, this.until)
			require.LessOrEqual(t, next.from, this.until)
			require.LessOrEqual(t, this.from, next.from)
		}
		require.Zero(t, p.read(newest).until)
	}
	require.Nil(t, log.Part(uint64(os.Getpid())))
}
