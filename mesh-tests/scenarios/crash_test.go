package scenarios

import "testing"

// etcd's process alone is killed, of the voter that leads at that moment: it is
// started again on its disk, and another leads meanwhile or it does again.
func TestMemberCrashes(t *testing.T) {
	f := beginSoon(t, five)
	for range 3 {
		f.fault("etcd is killed on the host that leads", f.Node(f.leader()).Crash("member"))
		f.up()
	}
	f.well("h1", "h2", "h3")
	f.quiet()
	f.same()
}
