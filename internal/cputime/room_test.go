package cputime

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// addTenants adds a batch of process 1 with a sample of each tenant.
func addTenants(s *Sums, user uint32, end uint64, tenants ...string) Result {
	var list []hits
	for _, tenant := range tenants {
		list = append(list, hits{process: 1, set: set("tenant", tenant)})
	}
	return add(s, Batch{User: user, StartUnixNano: end - 5*second, EndUnixNano: end}, &fakeProcesses{}, list...)
}

func ofTenant(user uint32, tenant string) string {
	return fmt.Sprintf("custom_labels.cpu.time map[process.executable.name:1 process.real_user.id:%d] map[tenant:%s]", user, tenant)
}

// fullSums are of a user with all the series that he may have, and of one with room; nothing was accepted. It returns
// when all series are quiet.
func fullSums(t *testing.T) (s *Sums, quiet uint64) {
	o := testOptions()
	o.MaxSeries = 2
	s = New(o)
	require.Zero(t, addTenants(s, 0, 100*second, "a", "b").LostLabels)
	addTenants(s, 7, 100*second, "a")
	s.Collect(105*second, allAlive)
	return s, 100*second + uint64(o.Expiry)
}

// A user who has all the series that he may makes room for new ones by those that have been quiet for Options.Expiry,
// though their process lives; one that comes again begins at 0, no earlier than it was told last.
func TestSumsMakeRoom(t *testing.T) {
	s, quiet := fullSums(t)
	s.Delivered()
	require.Equal(t, 0, addTenants(s, 0, quiet, "c").LostLabels)
	require.Equal(t, 0, addTenants(s, 0, quiet+second, "a").LostLabels)
	now := quiet + 2*second
	got := points(t, s.Collect(now, allAlive).Metrics)
	require.Equal(t, map[string]point{
		ofTenant(0, "c"): {0.01, quiet - 5*second, now}, ofTenant(0, "a"): {0.01, quiet - 4*second, now},
		ofTenant(7, "a"): {0.01, 95 * second, now}, // this user has room
	}, got)
	s.Delivered()
	// In a batch that began before the collection.
	quiet += second + uint64(testOptions().Expiry)
	s.Collect(quiet-second, allAlive)
	s.Delivered()
	addTenants(s, 0, quiet, "b")
	require.Equal(t, quiet-second, points(t, s.Collect(quiet+second, allAlive).Metrics)[ofTenant(0, "b")].start)
}

// What is not quiet, or was not accepted, makes no room.
func TestSumsMakeRoomOfNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		deliver func(s *Sums)
		after   int // ns of being quiet
		lost    int
	}{
		"quiet and accepted":      {(*Sums).Delivered, 0, 0},
		"quiet, accepted in part": {func(s *Sums) { s.DeliveredPart(0) }, 0, 0},
		"not quiet for long":      {(*Sums).Delivered, -1, 1},
		"refused":                 {func(*Sums) {}, 0, 1},
		"another part accepted":   {func(s *Sums) { s.DeliveredPart(1) }, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, quiet := fullSums(t)
			tc.deliver(s)
			require.Equal(t, tc.lost, addTenants(s, 0, uint64(int(quiet)+tc.after), "c").LostLabels)
		})
	}
}

// Series that a batch has counted in stay as long as it is added.
func TestSumsMakeRoomNotOfBatch(t *testing.T) {
	s, quiet := fullSums(t)
	s.Delivered()
	require.Equal(t, 2, addTenants(s, 0, quiet, "a", "b", "c", "d").LostLabels)
}

// Room is looked for once between two collections.
func TestSumsMakeRoomOnce(t *testing.T) {
	s, quiet := fullSums(t)
	require.Equal(t, 1, addTenants(s, 0, quiet, "c").LostLabels)
	s.Delivered()
	require.Equal(t, 1, addTenants(s, 0, quiet, "c").LostLabels, "it was looked for")
	s.Collect(quiet, allAlive)
	require.Equal(t, 0, addTenants(s, 0, quiet, "c").LostLabels)
}

// A resource whose last series has made room for another process's goes with the next collection, and comes again.
func TestSumsMakeRoomOfResource(t *testing.T) {
	s, quiet := fullSums(t)
	s.Delivered()
	require.Zero(t, add(s, Batch{EndUnixNano: quiet}, &fakeProcesses{}, hits{process: 2, set: set("tenant", "c")}).LostLabels)
	require.Len(t, s.resources, 3)
	s.Collect(quiet, allAlive)
	s.Delivered()
	require.Len(t, s.resources, 2)
	addTenants(s, 0, quiet+second, "a")
	require.Contains(t, points(t, s.Collect(quiet+2*second, allAlive).Metrics), ofTenant(0, "a"))
	s.Delivered()
	s.Collect(quiet+3*second, noneAlive)
	s.Delivered()
	s.Collect(10*quiet, noneAlive)
	require.Zero(t, s.Series())
	require.Empty(t, s.accounts)
	require.Zero(t, s.bytes)
	require.Empty(t, s.resources)
	require.Empty(t, s.owners)
}

// Room is made for users without a budget of their own, too.
func TestSumsMakeRoomOfOthers(t *testing.T) {
	o := testOptions()
	o.MaxSeries, o.MaxUsers = 1, 0
	s := New(o)
	addTenants(s, 0, 100*second, "a")
	s.Collect(100*second, allAlive)
	s.Delivered()
	require.Zero(t, addTenants(s, 7, 100*second+uint64(o.Expiry), "b").LostLabels)
}
