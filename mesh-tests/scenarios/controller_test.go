package scenarios

import (
	"testing"

	"suffrage/membership"
	"suffrage/mesh-tests/lab"
)

// The voter to go is the host of the only controller: it stays, and the owner is
// told what is missing. With a second controller, the one whose host is to go leaves
// it to the other one, which carries it out and leads from then on.
func TestControllersOwnHost(t *testing.T) {
	p := five
	p.Controllers = []string{"h3"}
	f := beginFit(t, p)
	f.fault("slow link around the host of the only controller", f.Around("h3", slow))
	f.until("the owner is told", func(s lab.Status) bool { return s.Refuses(membership.OnlyController, "h3") && s.Decision.Plan == nil })
	f.quiet()
	f.do(f.Node("h1").Enable("controller"))
	op := f.swapped("h3")
	f.heal()
	f.well(f.after(op)...)
	f.until("the other one leads", func(s lab.Status) bool { return s.Controller != nil && s.Controller.Host == "h1" })
}

// The controller that leads is killed in the middle of a swap; whoever leads next
// takes the Lease over once it has run out, and goes on with what the journal says.
func TestControllerCrashes(t *testing.T) {
	f := begin(t, five)
	op, _ := f.killedInTheMiddle("h3", "h4")
	op = f.completed(op)
	f.well(f.after(op)...)
}
