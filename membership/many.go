package membership

import (
	"fmt"
	"slices"
	"strings"

	"suffrage/fitness"
)

// manyUnfit refuses when more voters are to blame than may fail: they share a
// cause, and moving one vote will not help. A restart counts at once and not
// after a whole window: it is one event, and when it hits several voters (a
// stall in which they all lost their election) none of them is to be moved for
// it. With fewer than three voters none may fail, and guardCount says so.
func (a *assessment) manyUnfit() []Refusal {
	counts := func(r fitness.Reading) bool {
		return over(&r, fitness.Whole) || r.Signal == fitness.Stability && over(&r, 0)
	}
	blamed, possible := slices.Clone(a.blame.Hosts), slices.Clone(a.blame.Possible)
	for _, v := range a.voters {
		if slices.ContainsFunc(a.of(v).own[:], func(r *fitness.Reading) bool { return r != nil && counts(*r) }) {
			blamed, possible = append(blamed, v), append(possible, v)
		}
	}
	blamed, possible = distinct(blamed), distinct(possible)
	tolerance := Tolerance(len(a.voters), len(a.voters))
	if len(blamed) <= tolerance || len(a.voters) < 3 {
		return nil
	}
	var each []string
	var all []fitness.Reading
	for _, h := range possible {
		bad := only(a.evidence(h, a.beside(h)), counts)
		each = append(each, fmt.Sprintf("%s (%s)", h, describe(bad, 1)))
		all = append(all, bad...)
	}
	r := hold(ManyUnfit, strings.Join(possible, ","), fmt.Sprintf("%d of %s are to blame, %d may fail; moving one vote will not help%s",
		len(blamed), strings.Join(each, ", "), tolerance, a.shared(possible)), "find what they share and mend that")
	r.Figures = data(all)
	return []Refusal{r.with("to_blame", int64(len(blamed)), int64(tolerance), "1")}
}

func distinct(hosts []string) []string {
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// shared names what the hosts have in common, where it is known.
func (a *assessment) shared(hosts []string) string {
	zone, link, relayed := a.hosts[hosts[0]].Facts.Zone, a.hosts[hosts[0]].Facts.Link.Class, true
	for _, h := range hosts {
		f := a.hosts[h].Facts
		if f.Zone != zone {
			zone = ""
		}
		if f.Link.Class != link {
			link = ""
		}
		relayed = relayed && slices.ContainsFunc(f.Paths, func(p fitness.Path) bool { return p.Kind == "relayed" })
	}
	var share []string
	if zone != "" {
		share = append(share, "zone "+zone)
	}
	if link == fitness.Wifi || link == fitness.Cellular {
		share = append(share, string(link)+" links")
	}
	if relayed {
		share = append(share, "relayed paths")
	}
	if len(share) == 0 {
		return ""
	}
	return "; they share " + strings.Join(share, ", ")
}
