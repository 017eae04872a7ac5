package page

import (
	"cmp"
	"slices"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// ModelVersion is the version of the JSON form.
const ModelVersion = 1

// Model is what the page shows, and what GET /v1/fleet gives. Lists are never null.
type Model struct {
	Version int `json:"version"`
	// At is when the fleet was looked at, AgeSeconds how long ago that is by the same
	// clock.
	At         time.Time `json:"at"`
	AgeSeconds float64   `json:"age_seconds"`
	// Host is the one whose controller serves this; Leads: it is the one that leads.
	// One that stands by shows its own look.
	Host  string `json:"host"`
	Leads bool   `json:"leads"`
	// Controller leads since ControllerSince; ControllerNote says why it is not known.
	Controller      string    `json:"controller,omitempty"`
	ControllerSince time.Time `json:"controller_since,omitzero"`
	ControllerNote  string    `json:"controller_note,omitempty"`

	ClusterID string          `json:"cluster_id"`
	Mode      string          `json:"mode"`
	Paused    *membership.Say `json:"paused,omitempty"`
	Quorum    Quorum          `json:"quorum"`
	// Hosts are the leader, the voters and the learner first, then by name.
	Hosts []Host `json:"hosts"`
	// Links are pairs of hosts of which one votes at least.
	Links []Link `json:"links"`
	// Decision has the form of `suffrage plan -o json`.
	Decision membership.Decision `json:"decision"`
	Request  *membership.Request `json:"request,omitempty"`
	// Operations are the open one and those that ended, newest first.
	Operations []membership.Operation `json:"operations"`
	// Events are newest first.
	Events []Event `json:"events"`

	now time.Time // of the serving, for ages
}

// Host is one host at a glance.
type Host struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Zone    string `json:"zone,omitempty"`
	// Role is leader, voter, learner, standby or unknown.
	Role string `json:"role"`
	// Grade is how much of a server it runs, empty where nobody tells.
	Grade fitness.Grade `json:"grade,omitempty"`
	// Mark is the owner's word: pinned, eligible, ineligible, unmanaged, or unknown
	// while etcd cannot be read.
	Mark string `json:"mark"`
	// Agent: it answered; Error says why not.
	Agent bool   `json:"agent"`
	Error string `json:"error,omitempty"`
	// Responding: its member served a request that has to pass through a quorum; null
	// where it has no member. MemberError says why not.
	Responding  *bool           `json:"responding"`
	MemberError string          `json:"member_error,omitempty"`
	Verdict     fitness.Verdict `json:"verdict"`
	// Worst has the worst full window of each gating signal.
	Worst []Worst `json:"worst"`
}

// Silent reports whether the host has a member that does not answer.
func (h Host) Silent() bool { return h.Responding != nil && !*h.Responding }

// Votes reports whether the host holds a vote.
func (h Host) Votes() bool { return h.Role == "leader" || h.Role == "voter" }

// Worst is the worst figure of a signal that has to do with a host.
type Worst struct {
	Signal fitness.Signal `json:"signal"`
	// Known is false where no window is full; Figure means nothing then.
	Known  bool           `json:"known"`
	Figure fitness.Figure `json:"figure"`
	Unit   string         `json:"unit"`
	// Peer is the other end, where the signal is a pair's.
	Peer string `json:"peer,omitempty"`
	// Blamed: it is why the host is unfit. That a pair is slow is the fault of one
	// end, mostly.
	Blamed bool `json:"blamed"`
}

// Of makes the model of a look, as it is shown at now.
func Of(l Look, host string, seen []Event, now time.Time) Model {
	v, d := l.Inputs.View, l.Decision
	m := Model{Version: ModelVersion, At: l.Inputs.Now, AgeSeconds: max(0, now.Sub(l.Inputs.Now).Seconds()), Host: host, Leads: l.Leads,
		Controller: l.Controller, ControllerSince: l.Since, ControllerNote: l.Note, ClusterID: v.ClusterID, Mode: d.Mode,
		Paused: l.Inputs.Policy.Paused, Quorum: quorumOf(l), Decision: d, Request: l.Inputs.Request, now: now}
	m.Hosts, m.Links, m.Operations = hostsOf(l), linksOf(l), operationsOf(l)
	m.Events = eventsOf(l, m, seen)
	return m
}

func hostsOf(l Look) []Host {
	out := []Host{}
	for _, h := range l.Inputs.View.Hosts {
		s := Host{Name: h.Name, Address: h.Address, Zone: h.Facts.Zone, Role: l.Inputs.View.Role(h.Name), Grade: h.Grade(), Mark: markOf(l, h), Agent: h.Reachable,
			Error: h.Error, Verdict: verdictOf(l.Decision, h.Name)}
		for _, m := range l.Inputs.View.Members {
			if m.Host == h.Name {
				s.Responding, s.MemberError = &m.Responding, m.Error
			}
		}
		for _, sig := range append([]fitness.Signal{fitness.RTT}, fitness.HostSignals[:]...) {
			s.Worst = append(s.Worst, worstOf(l.Inputs.Readings, s.Verdict, sig))
		}
		out = append(out, s)
	}
	order := []string{"leader", "voter", "learner", "standby", "unknown"}
	slices.SortStableFunc(out, func(a, b Host) int {
		// The leader is among the voters: rows that change places are hard to read.
		return cmp.Or(cmp.Compare(max(slices.Index(order, a.Role), 1), max(slices.Index(order, b.Role), 1)), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// markOf is the mark in a word: while etcd is away, "unmanaged" would be a guess.
func markOf(l Look, h membership.Host) string {
	if l.Inputs.View.Error != "" {
		return "unknown"
	}
	return h.Mark.Word()
}

func verdictOf(d membership.Decision, host string) fitness.Verdict {
	for _, v := range d.Verdicts {
		if v.Host == host {
			return v
		}
	}
	return fitness.Verdict{Host: host}
}

func worstOf(readings []fitness.Reading, v fitness.Verdict, sig fitness.Signal) Worst {
	w := Worst{Signal: sig, Unit: sig.Unit()}
	if r := WorstReading(readings, v.Host, sig); r != nil {
		w.Known, w.Figure = true, r.Figure
		if w.Peer = r.Peer; w.Peer == v.Host {
			w.Peer = r.Host
		}
	}
	w.Blamed = slices.ContainsFunc(v.Reasons, func(r fitness.Reason) bool { return r.Signal == sig && r.Band == fitness.Over })
	return w
}

// WorstReading is the one of a signal that has the worst figure among a host's own
// and those of its peers' ways to it; nil where no window is full.
func WorstReading(readings []fitness.Reading, host string, sig fitness.Signal) *fitness.Reading {
	var worst *fitness.Reading
	for i := range readings {
		r := &readings[i]
		if (r.Host == host || r.Peer == host) && r.Signal == sig && r.Count == fitness.WindowSize && (worst == nil || r.Figure > worst.Figure) {
			worst = r
		}
	}
	return worst
}

// operationsOf puts the open one first. One that was recorded and is still in the
// journal has ended.
func operationsOf(l Look) []membership.Operation {
	out := []membership.Operation{}
	open := l.Inputs.Open
	if l.Decision.Operation != nil {
		open = l.Decision.Operation // as it is to be written down
	}
	for _, op := range l.Inputs.Operations {
		if open != nil && op.ID == open.ID {
			open = nil
		}
	}
	if open != nil {
		out = append(out, *open)
	}
	ended := slices.Clone(l.Inputs.Operations)
	slices.SortStableFunc(ended, func(a, b membership.Operation) int { return b.Begun.Compare(a.Begun) })
	return append(out, ended...)
}
