package scenarios

import (
	"strings"
	"testing"
)

// kept is how many entries etcd keeps for a member that is behind, and more: it
// saves a snapshot every 10,000 and keeps 5,000 before it.
const kept = 25_000

// A voter is away while more is written than the others keep of their log. Back,
// it cannot be told entry by entry: the leader sends it all that there is.
func TestFarBehind(t *testing.T) {
	f := beginSoon(t, five)
	f.fault("h3 loses its power", f.Node("h3").PowerOff(t.Context()))
	f.do(f.fill(kept, 1)())
	f.ended("it boots", f.Node("h3").Boot())
	f.back("h3")
	said, err := f.Metrics(t.Context(), "h3")
	f.do(err)
	if !strings.Contains(said, "\netcd_network_snapshot_receive_success{") {
		f.fail("h3 was told entry by entry")
	}
	f.same()
}
