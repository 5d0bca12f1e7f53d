//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// maxUsers with samples in a ring buffer at the same time whose shares are followed;
// of more, the least recently seen start anew.
const maxUsers = 4096

// freeUsers is how many free elements of the map of users each CPU may keep to itself
// (LOCAL_FREE_TARGET of kernel/bpf/bpf_lru_list.c).
const freeUsers = 128

func validateUserShare(share float64) error {
	if share != 0 && !(share >= MinUserShare && share <= 1) {
		return fmt.Errorf("user share %v is not between %v and 1", share, MinUserShare)
	}
	return nil
}

// leastLimit is room for one sample.
const leastLimit = maxSampleBytes + 2*ringHeadBytes

// userLimit is how many of the bytes for samples one user may take; 0: all. One sample
// always fits.
func userLimit(share float64, bytes int) uint64 {
	if share == 0 || share == 1 {
		return 0
	}
	return max(uint64(share*float64(bytes)), leastLimit)
}

// unsharedPart of a user's limit is for all: while no more is unread, no account is kept.
const unsharedPart = 8

// unshared is that in bytes. One sample always fits into the rest.
func unshared(limit uint64) uint64 { return min(limit/unsharedPart, limit-leastLimit) }

// userEntries of the map of users hold maxUsers.
func userEntries(cpus int) uint32 { return uint32(maxUsers + freeUsers*cpus) }

// setUserShare limits the users of an object whose ring buffer has so many bytes for
// samples of bytes in all, and returns the watermark that wakes its reader: one that a
// single user can reach.
func (s *Sampler) setUserShare(spec *ebpf.CollectionSpec, share float64, sampleBytes, ringBytes int) (uint64, error) {
	limit := userLimit(share, sampleBytes)
	users, free := uint32(1), uint64(0)
	mark := watermark(ringBytes)
	if limit > 0 {
		users, free = userEntries(s.cpus.Possible), unshared(limit)
		mark = min(mark, limit/2)
	}
	spec.Maps[profilerMapUsers].MaxEntries = users
	return mark, setVariables(spec, map[string]any{profilerVarUserLimitBytes: limit - free, profilerVarUnsharedBytes: free})
}

// UserDrops tells, by uid in the init user namespace, how many samples found no room in
// their user's share. What was counted of a user that was not seen for long may be
// forgotten; Counters.DroppedUserShare has them all.
func (s *Sampler) UserDrops() (map[uint32]uint64, error) { return userDrops(s.objs.Users) }

func userDrops(users *ebpf.Map) (map[uint32]uint64, error) {
	drops := map[uint32]uint64{}
	var uid uint32
	var share profilerUserShare
	all := users.Iterate()
	for all.Next(&uid, &share) {
		if share.Dropped > 0 {
			drops[uid] = share.Dropped
		}
	}
	if err := all.Err(); err != nil {
		return drops, fmt.Errorf("read shares of users: %w", err)
	}
	return drops, nil
}
