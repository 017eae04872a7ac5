package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"suffrage/fitness"
)

// relays says in a line each which hosts reach each other through an overlay
// network's relay, since when, and how before. It is a reason for slow round
// trips, and for nothing by itself.
func relays(hosts []HostStatus, now time.Time) []string {
	type pair struct{ a, b string }
	found := map[pair][]fitness.Path{} // each way's, or one
	ways := map[pair]string{}
	for _, h := range hosts {
		for _, p := range h.Paths {
			if p.Kind != "relayed" {
				continue
			}
			k := pair{min(h.Host, p.Peer), max(h.Host, p.Peer)}
			found[k] = append(found[k], p)
			ways[k] = "from " + h.Host + " to " + p.Peer
		}
	}
	var out []string
	byName := func(x, y pair) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) }
	for _, k := range slices.SortedFunc(maps.Keys(found), byName) {
		way := ways[k]
		if len(found[k]) == 2 {
			way = k.a + " and " + k.b
		}
		first := slices.MinFunc(found[k], func(x, y fitness.Path) int { return cmp.Compare(x.Since, y.Since) })
		out = append(out, way+": "+pathLine(first, now))
	}
	return out
}

// pathLine is "relayed through lab1, direct before, since 3 min ago".
func pathLine(p fitness.Path, now time.Time) string {
	text := p.String()
	if p.Since != 0 {
		text += fmt.Sprintf(", since %s", ago(time.UnixMicro(p.Since), now))
	}
	return text
}
