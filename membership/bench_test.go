package membership

import (
	"bytes"
	"testing"
)

// large is a thousand hosts with seven voters, one of them slow and every other
// host a fit candidate: the most that a decision has to look at.
func large() Inputs {
	f := newFleet(7, 993)
	f.in.Policy.Maximum = 9
	if err := f.apply("rtt h3 * 300x151ms"); err != nil {
		panic(err)
	}
	return f.inputs()
}

// BenchmarkDecide has to stay below 10 ms.
func BenchmarkDecide(b *testing.B) {
	in := large()
	if d := Decide(in); d.Kind != Planned || len(d.Plan.Ranked) != maxRanked {
		b.Fatal(d)
	}
	b.ReportAllocs()
	for b.Loop() {
		Decide(in)
	}
}

func BenchmarkReadInputs(b *testing.B) {
	var file bytes.Buffer
	if err := WriteInputs(&file, large()); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(file.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadInputs(file.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}
