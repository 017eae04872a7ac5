package founding

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"suffrage/membership"
	"suffrage/membership/host"
)

// Codes of refusals, besides those that packages membership and host have.
const (
	// Fenced: this host lost its vote and must not start.
	Fenced membership.Code = "fenced"
	// WasMember: this host has been, or is to be, a member of a cluster.
	WasMember membership.Code = "was-member"
	// ClusterRecorded: another founding was begun here.
	ClusterRecorded membership.Code = "cluster-recorded"
	// ClusterExists: another host has something of a cluster.
	ClusterExists membership.Code = "cluster-exists"
	// NotFirst: another host has to create first.
	NotFirst membership.Code = "not-first"
	// ClusterAlive: another host runs a member of the cluster that is to be reset.
	ClusterAlive membership.Code = "cluster-alive"
)

func reject(c membership.Code, subject, next, format string, args ...any) membership.Refusal {
	return membership.Refusal{Code: c, Kind: membership.Reject, Subject: subject, Detail: fmt.Sprintf(format, args...), Next: next}
}

// First is the host that chooses the token.
func First(initial map[string]string) string {
	return slices.Min(slices.Collect(maps.Keys(initial)))
}

// Silent are the other hosts whose agents did not answer: what they have is not
// known.
func (s Sight) Silent() []string {
	var out []string
	for _, o := range s.Others {
		if o.Standing == nil && o.Etcd == "" {
			out = append(out, o.Host)
		}
	}
	return out
}

// goesOn gives the record of a founding of this kind that was begun here and
// never completed.
func goesOn(s host.Standing, by string) *host.Cluster {
	if s.Record != nil && !s.Record.Made && s.Record.By == by {
		return s.Record
	}
	return nil
}

// CreateRefusals says what stands against creating this host's member of a
// cluster of these hosts. The record is the founding to go on with: this host's
// own, or the first host's; nil on the first host where none was begun.
func CreateRefusals(s Sight, initial map[string]string) (*host.Cluster, []membership.Refusal) {
	out := createHere(s.Here, s.Local, initial)
	record := goesOn(s.Local, host.ByCreate)
	first := First(initial)
	if record == nil && first != s.Here {
		i := slices.IndexFunc(s.Others, func(o Seen) bool { return o.Host == first })
		switch {
		case i < 0 || s.Others[i].Standing == nil:
			why := "it is not in the roster"
			if i >= 0 {
				why = s.Others[i].Silence
			}
			return nil, append(out, reject(NotFirst, first, "start the agent of "+first, "%s comes first, and its agent has to tell of the cluster that was created there: %s", first, why))
		case s.Others[i].Standing.Record == nil && s.Others[i].Standing.Clean():
			return nil, append(out, reject(NotFirst, first, "suffrage cluster create, on "+first, "%s comes first by name, and nothing was created there yet", first))
		}
		record = s.Others[i].Standing.Record
		if record == nil || record.By != host.ByCreate || !maps.Equal(record.Members, initial) {
			return nil, append(out, reject(ClusterExists, first, "make member.initial_cluster the same on all of them, or look at what "+first+" has", "%s", otherCluster(s.Others[i], record)))
		}
	}
	for _, o := range s.Others {
		out = append(out, createThere(o, record, initial)...)
	}
	return record, out
}

func otherCluster(o Seen, record *host.Cluster) string {
	if record == nil {
		return fmt.Sprintf("%s has %s, and no record of what was created", o.Host, has(*o.Standing))
	}
	return fmt.Sprintf("on %s cluster %s was made by %s of %s", o.Host, record.ID, record.By, strings.Join(slices.Sorted(maps.Keys(record.Members)), ", "))
}

// createHere is about this host alone.
func createHere(here string, l host.Standing, initial map[string]string) []membership.Refusal {
	switch r := l.Record; {
	case l.Running:
		return []membership.Refusal{reject(host.ServerRuns, here, "suffrage status", "a member runs here")}
	case l.Prepared:
		return []membership.Refusal{reject(Fenced, here, "remove fence.json under data, then give this command again", "this host was prepared as a standby, before member.initial_cluster named it: its member would not start")}
	case l.Fence != "":
		return []membership.Refusal{reject(Fenced, here, "if that cluster is gone for good: remove fence.json and role.json under data", "this host was a member, and is fenced %s", l.Fence)}
	case r != nil && !r.Made && r.By == host.ByCreate && maps.Equal(r.Members, initial):
		return nil // it goes on
	case r != nil && !r.Made:
		return []membership.Refusal{reject(ClusterRecorded, here, "give cluster "+r.By+" again as it was given; if it is not wanted and no host of it was started: remove cluster.json under data",
			"cluster %s of %s was begun here by %s and is not complete", r.ID, strings.Join(slices.Sorted(maps.Keys(r.Members)), ", "), r.By)}
	case l.Datastore:
		return []membership.Refusal{reject(membership.DatastorePresent, here, "start it; or, if nobody needs that cluster, move the datastore and cluster.json aside", "there is a datastore%s", ofCluster(l))}
	case r != nil:
		return []membership.Refusal{reject(WasMember, here, "if its disk is not mounted, mount it; else bring this host back as a new member of its cluster; without quorum: suffrage cluster reset",
			"this host is a member of cluster %s, made here by %s, and its datastore is gone: made anew it would be a member that forgot what it acknowledged", r.ID, r.By)}
	case l.Join != "":
		return []membership.Refusal{reject(WasMember, here, "suffrage member, which joins", "this host was told to join a cluster (operation %s)", l.Join)}
	case l.Role != "":
		return []membership.Refusal{reject(WasMember, here, "if that cluster is gone for good: remove role.json under data", "this host has taken part in a cluster, as %s", l.Role)}
	}
	return nil
}

func ofCluster(l host.Standing) string {
	if l.Cluster == "" {
		return ""
	}
	return " of cluster " + l.Cluster
}

// createThere is about one other host.
func createThere(o Seen, record *host.Cluster, initial map[string]string) []membership.Refusal {
	exists := func(next, format string, args ...any) []membership.Refusal {
		return []membership.Refusal{reject(ClusterExists, o.Host, next, format, args...)}
	}
	st := o.Standing
	if o.Etcd != "" && (st == nil || st.Clean()) {
		return exists("stop it, if it is nobody's; else bring this host into that cluster", "something is at its etcd port: %s", o.Etcd)
	}
	if st == nil || st.Clean() {
		return nil
	}
	same := record != nil && st.Record != nil && st.Record.ID == record.ID && initial[o.Host] != "" && st.Fence == "" && (st.Cluster == "" || st.Cluster == record.ID)
	if !same {
		return exists("bring this host into that cluster; if nobody needs it, move what is there aside", "%s has %s", o.Host, has(*st))
	}
	if !st.Running && o.Etcd == "" {
		return nil
	}
	switch o.Starting {
	case NeverStarted:
		return nil
	case HasStarted:
		return exists("bring this host back as a new member of its cluster", "its etcd knows this host as a member that has started: made anew it would have forgotten what it acknowledged")
	}
	return exists("stop the member there, create on every host, then start them all", "its member runs, and cannot be asked whether this host's has ever started")
}

// has names what a host has of a cluster.
func has(s host.Standing) string {
	var out []string
	if s.Datastore {
		out = append(out, "a datastore"+ofCluster(s))
	}
	if s.Running {
		out = append(out, "a member that runs")
	}
	if s.Fence != "" {
		out = append(out, "a fence")
	}
	if s.Join != "" {
		out = append(out, "the order to join a cluster")
	}
	if s.Role != "" {
		out = append(out, "the role "+s.Role)
	}
	if s.Record != nil {
		out = append(out, fmt.Sprintf("the record of cluster %s, made by %s", s.Record.ID, s.Record.By))
	}
	return strings.Join(out, ", ")
}

// ResetRefusals says what stands against a new cluster of this host alone.
// moves: the datastore here is to be moved aside.
func ResetRefusals(s Sight, moves bool) []membership.Refusal {
	out := resetHere(s.Here, s.Local, moves)
	for _, o := range s.Others {
		st := o.Standing
		switch {
		case o.Etcd != "":
			out = append(out, alive(o.Host, o.Etcd))
		case st == nil:
		case st.Running:
			out = append(out, alive(o.Host, "its agent says that the member runs"))
		case st.Record != nil && st.Record.By == host.ByReset && st.Datastore && st.Cluster == st.Record.ID && !slices.Contains(replacedHere(s.Local), st.Record.ID):
			out = append(out, reject(ClusterExists, o.Host, "start that one; if it is not wanted, move its datastore aside there", "%s has cluster %s, which a reset made there at %s", o.Host, st.Record.ID, st.Record.At.UTC().Format("2006-01-02T15:04:05Z")))
		}
	}
	return out
}

func replacedHere(l host.Standing) []string {
	if r := goesOn(l, host.ByReset); r != nil {
		return r.Replaces
	}
	return nil
}

func alive(name, why string) membership.Refusal {
	return reject(ClusterAlive, name, "while a majority of the voters runs, nothing is lost: suffrage status; else stop it there for good: systemctl disable --now suffrage-member",
		"etcd runs on %s (%s): a new cluster would be a second one", name, why)
}

func resetHere(here string, l host.Standing, moves bool) []membership.Refusal {
	switch r := l.Record; {
	case l.Running:
		return []membership.Refusal{reject(host.ServerRuns, here, "save what it has: suffrage snapshot save; then stop it: systemctl stop suffrage-member", "the member of this host runs")}
	case l.Fence != "":
		return []membership.Refusal{reject(Fenced, here, "reset on another host; if this is the only one left: remove fence.json under data", "this host is fenced %s: it lost its vote, and what it has may be old", l.Fence)}
	case r != nil && !r.Made && r.By == host.ByReset:
		return nil // it goes on
	case r != nil && !r.Made:
		return []membership.Refusal{reject(ClusterRecorded, here, "suffrage cluster create", "cluster %s was begun to be created here and never started: there is nothing to reset", r.ID)}
	case l.Datastore && !moves:
		return []membership.Refusal{reject(membership.DatastorePresent, here, "--aside, which moves it and keeps it", "there is a datastore%s", ofCluster(l))}
	}
	return nil
}

// Replaced are the IDs of all clusters that were seen, but for the new one.
func (s Sight) Replaced(id string) []string {
	seen := map[string]bool{}
	add := func(st host.Standing) {
		seen[st.Cluster] = true
		for _, a := range st.Aside {
			seen[a.Cluster] = true
		}
		if st.Record != nil {
			seen[st.Record.ID] = true
			for _, id := range st.Record.Replaces {
				seen[id] = true
			}
		}
	}
	add(s.Local)
	for _, o := range s.Others {
		if o.Standing != nil {
			add(*o.Standing)
		}
	}
	delete(seen, "")
	delete(seen, id)
	return slices.Sorted(maps.Keys(seen))
}
