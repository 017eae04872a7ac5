package fitness

import (
	"cmp"
	"fmt"
)

// Standing is what a fit candidate is ranked by.
type Standing struct {
	Host string
	// Crowd is the largest number of voters that would share one zone; hosts
	// without a zone share with nobody.
	Crowd int
	Link  LinkClass
	// Relayed is true when its path to any voter that would remain is relayed.
	Relayed bool
	// WorstRTT is the worst p99 round trip to the voters that would remain.
	WorstRTT Figure
	WAL      Figure
	// Headroom is the available memory above the floor, in bytes.
	Headroom Figure
}

// Compare orders two standings, the better first: the first difference wins.
// The order is total, since names differ.
//
// Round trips and fsyncs are compared in steps, of a tenth of the candidate's
// limit, and headroom in steps of a GiB: below that the difference of two p99s
// is noise, and noise must not choose.
func (s Standing) Compare(o Standing, rtt, wal Limit) int {
	step := func(f, limit Figure) int {
		if limit <= 0 || f >= 1e9*limit {
			return 1e9
		}
		return int(f / (limit / 10))
	}
	return cmp.Or(
		cmp.Compare(s.Crowd, o.Crowd),
		cmp.Compare(s.class(), o.class()),
		cmp.Compare(step(s.WorstRTT, rtt.Candidate), step(o.WorstRTT, rtt.Candidate)),
		cmp.Compare(step(s.WAL, wal.Candidate), step(o.WAL, wal.Candidate)),
		cmp.Compare(int64(o.Headroom)>>30, int64(s.Headroom)>>30),
		cmp.Compare(s.Host, o.Host),
	)
}

// class orders links: wired before what cannot be told, before wifi, before
// cellular, before anything that goes through a relay.
func (s Standing) class() int {
	if s.Relayed {
		return 4
	}
	switch s.Link {
	case Wired:
		return 0
	case Wifi:
		return 2
	case Cellular:
		return 3
	}
	return 1
}

// String says what put a candidate where it is.
func (s Standing) String() string {
	path := "direct"
	if s.Relayed {
		path = "relayed"
	}
	return fmt.Sprintf("%s: %s, %s, rtt p99 %s, wal_fsync p99 %s, %s of memory to spare",
		s.Host, s.Link, path, s.WorstRTT.Text("s"), s.WAL.Text("s"), s.Headroom.Text("B"))
}
