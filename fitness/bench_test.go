package fitness

import "testing"

// BenchmarkWindowAdd adds a sample and reads the p99. Wanted: under 200 ns
// without allocation, so that a scheduler notices nothing.
func BenchmarkWindowAdd(b *testing.B) {
	var values [1021]float64 // a prime, so that the ring and the values never meet
	x := uint64(1)
	for i := range values {
		x = x*6364136223846793005 + 1442695040888963407
		values[i] = float64(x>>40) / (1 << 24)
	}
	var w Window
	var sum Figure
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		w.Add(values[i])
		sum += w.P99()
		if i++; i == len(values) {
			i = 0
		}
	}
	_ = sum
}

// BenchmarkRead judges one full series. A controller's round over 200 agents
// with five voters reads about 4,000. Wanted: some 20 µs without allocation.
func BenchmarkRead(b *testing.B) {
	x := uint64(1)
	values := repeat(SeriesSize, 0)
	for i := range values {
		x = x*6364136223846793005 + 1442695040888963407
		values[i] = float64(x>>40) / (1 << 26)
	}
	s, c := plain(RTT, values)
	b.ReportAllocs()
	for b.Loop() {
		Read(s, c)
	}
}

// BenchmarkReadDisk has a histogram beside every sample.
func BenchmarkReadDisk(b *testing.B) {
	s, c := plain(WALFsync, repeat(SeriesSize, 0.002))
	for _, m := range s.Samples {
		s.Bounds = append(s.Bounds, Bound{At: m.At, Lo: 0.001, Hi: 0.002, N: 500})
	}
	b.ReportAllocs()
	for b.Loop() {
		Read(s, c)
	}
}
