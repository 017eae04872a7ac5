package scenarios

import "testing"

// Nothing more fits on a voter's disk while clients write a lot: it ends, or falls
// behind, and is the owner's case. Once there is room it is a voter as before.
func TestFullDisk(t *testing.T) {
	p := five
	p.Spaces = []string{"h3"}
	f := begin(t, p)
	f.fault("the disk of h3 is full", f.Space("h3").Fill())
	done := f.fill(1000, 64<<10)
	f.down("h3")
	f.came()
	f.do(done())
	f.ended("there is room again", f.Space("h3").Free())
	f.back("h3")
	f.same()
}
