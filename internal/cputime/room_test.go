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

// Where memory is short, a process that has no room for another series keeps those that it has, however rarely they grow.
func TestSumsWithoutRoomStay(t *testing.T) {
	s := New(testOptions())
	r := &fakeProcesses{}
	add(s, Batch{EndUnixNano: 1 * second}, r, hits{process: 1})
	require.Equal(t, 1, add(s, Batch{EndUnixNano: 2 * second, Tight: true}, r, hits{process: 1, set: set("tenant", "a")}).LostOwner)
	s.Collect(3*second, allAlive)
	s.Delivered()
	require.Contains(t, points(t, s.Collect(200*second, allAlive).Metrics), "custom_labels.cpu.time map[process.executable.name:1 process.real_user.id:0] map[]")
}

// quietSums are of a user who has less series than he may, and of one with fewer; both are accepted and quiet when it
// returns, though their processes live. The function returned has the Sums collect when they have so many bytes too many.
func quietSums(t *testing.T) (s *Sums, collect func(now uint64, excess int) Collection, quiet uint64) {
	o, tooMany := testOptions(), 0
	o.Excess = func() int { return tooMany }
	s = New(o)
	collect = func(now uint64, excess int) Collection {
		tooMany = excess
		return s.Collect(now, allAlive)
	}
	addTenants(s, 0, 100*second, "a", "b")
	addTenants(s, 7, 100*second, "a")
	require.Len(t, points(t, collect(105*second, 1<<30).Metrics), 3, "nothing is quiet")
	s.Delivered()
	return s, collect, 100*second + uint64(o.Expiry)
}

// Where memory is short, quiet series go though their users have room for more, and begin anew when they come again.
func TestSumsShrink(t *testing.T) {
	s, collect, quiet := quietSums(t)
	require.Len(t, points(t, collect(quiet-1, 1<<30).Metrics), 3, "nothing is quiet")
	s.Delivered()
	require.Equal(t, 1, add(s, Batch{User: 1, EndUnixNano: quiet, Tight: true}, &fakeProcesses{}, hits{process: 2}).LostOwner)
	before := s.bytes
	c := collect(quiet, 1<<30)
	require.Len(t, points(t, c.Metrics), 1, "that of the batch")
	require.Negative(t, c.Bytes)
	require.Equal(t, before+c.Bytes, s.bytes)
	require.Len(t, s.resources, 1)
	require.Empty(t, s.owners)
	require.Len(t, s.accounts, 1)
	requireAccounts(t, s)
	s.Delivered()

	// One comes again in a batch that began before it was told last.
	addTenants(s, 0, quiet+2*second, "a")
	now := quiet + 3*second
	require.Equal(t, point{0.01, quiet - 1, now}, points(t, collect(now, 1<<30).Metrics)[ofTenant(0, "a")])
}

// What shrinks is the largest account, and only as much as is asked for.
func TestSumsShrinkLargest(t *testing.T) {
	s, collect, quiet := quietSums(t)
	require.Len(t, points(t, collect(quiet, 0).Metrics), 3, "there is room")
	s.Delivered()
	got := points(t, collect(quiet+second, 1).Metrics)
	require.Len(t, got, 1)
	require.Contains(t, got, ofTenant(7, "a"))
}

// Users without an account of their own shrink, too. What was refused stays.
func TestSumsShrinkOthers(t *testing.T) {
	o := testOptions()
	o.MaxUsers, o.Excess = 0, func() int { return 1 << 30 }
	s := New(o)
	addTenants(s, 0, 100*second, "a")
	s.Collect(100*second, allAlive)
	later := 100*second + uint64(o.Expiry)
	require.Len(t, points(t, s.Collect(later, allAlive).Metrics), 1)
	s.Delivered()
	require.Empty(t, s.Collect(later+second, allAlive).Metrics)
	require.Zero(t, s.bytes)
}

// A user gets the account of one of whom all is quiet, though that one's process lives, and with it what he had as one of
// the others. Who comes again is one of them.
func TestSumsTakePlace(t *testing.T) {
	o := testOptions()
	o.MaxUsers, o.MaxSeries = 1, 2
	s := New(o)
	addTenants(s, 0, 100*second, "a", "b")
	s.Collect(100*second, allAlive)
	s.Delivered()
	now := 100*second + uint64(o.Expiry)
	addTenants(s, 7, now-1, "a")
	addTenants(s, 8, now-1, "a")
	require.Contains(t, s.accounts, uint32(0), "it is not quiet for long")
	require.Equal(t, 2, s.others.series)
	s.Collect(now-1, allAlive)
	s.Delivered()

	require.Zero(t, addTenants(s, 7, now, "b").LostLabels)
	require.Len(t, s.accounts, 1)
	require.Equal(t, 2, s.accounts[7].series)
	require.Equal(t, 1, s.others.series, "that of another user")
	require.Zero(t, addTenants(s, 0, now, "a").LostLabels)
	require.Equal(t, 2, s.others.series)
	require.Equal(t, map[string]point{
		ofTenant(0, "a"): {0.01, now - 1, now + second}, // no earlier than it was told last
		ofTenant(7, "a"): {0.01, now - 1 - 5*second, now + second}, ofTenant(7, "b"): {0.01, now - 1, now + second},
		ofTenant(8, "a"): {0.01, now - 1 - 5*second, now + second},
	}, points(t, s.Collect(now+second, allAlive).Metrics))
	requireAccounts(t, s)
}

// A user of whom something is not quiet, or was not accepted, keeps the account; a place is looked for once between two
// collections.
func TestSumsKeepPlace(t *testing.T) {
	o := testOptions()
	o.MaxUsers = 1
	s := New(o)
	addTenants(s, 0, 100*second, "a", "b")
	now := 100*second + uint64(o.Expiry)
	s.Collect(now, allAlive)
	addTenants(s, 7, now, "a")
	require.Contains(t, s.accounts, uint32(0), "nothing was accepted")
	s.Delivered()
	addTenants(s, 7, now, "b")
	require.Contains(t, s.accounts, uint32(0), "it was looked for")
	addTenants(s, 0, now, "a")
	s.Collect(now+second, allAlive)
	s.Delivered()
	addTenants(s, 7, now+second, "a")
	require.Contains(t, s.accounts, uint32(0), "one is not quiet")
	s.Collect(now+uint64(o.Expiry), allAlive)
	addTenants(s, 7, now+uint64(o.Expiry), "a")
	require.Contains(t, s.accounts, uint32(7))
}

// Of several users of whom all is quiet, the one has to go who has been for longest.
func TestSumsTakePlaceOfQuietest(t *testing.T) {
	o := testOptions()
	o.MaxUsers = 5
	s := New(o)
	for _, user := range []uint32{3, 1, 4, 0, 2} {
		addTenants(s, user, (100+uint64(user))*second, "a")
	}
	s.Collect(110*second, allAlive)
	s.Delivered()
	for i := range uint32(5) {
		addTenants(s, 10+i, 110*second+uint64(o.Expiry), "a")
		require.Len(t, s.accounts, o.MaxUsers)
		require.NotContains(t, s.accounts, i)
		require.Contains(t, s.accounts, 10+i)
	}
	requireAccounts(t, s)
}
