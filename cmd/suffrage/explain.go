package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"suffrage/fitness"
	"suffrage/membership"
)

// Explanation is what `suffrage explain HOST -o json` prints.
type Explanation struct {
	At       time.Time         `json:"at"`
	Host     membership.Host   `json:"host"`
	Role     string            `json:"role"`
	Verdict  fitness.Verdict   `json:"verdict"`
	Readings []fitness.Reading `json:"readings"`
	// ByOthers are their round trips to it, which it is judged by too.
	ByOthers []fitness.Reading `json:"by_others"`

	leads string // where its datastore endpoint leads
}

func newExplainCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "explain HOST",
		Short: "Every signal of one host: figure, limit, headroom, since when",
		Long: `Shows every signal that the host is judged by, with its figure, its limit, how
much room is left and since when it has been so; whether the probe or etcd's own
histogram decided; and the facts that rank it. It changes nothing.`,
		Example:           "  suffrage explain h3\n  suffrage explain h3 -o json",
		Args:              exactly("HOST"),
		ValidArgsFunction: completeHosts,
		RunE: func(c *cobra.Command, args []string) error {
			return looking(c, func(f *fleet, l look) error {
				if err := f.known(args[0]); err != nil {
					return err
				}
				e := explain(l, args[0])
				if wantsJSON(c) {
					return printJSON(c.OutOrStdout(), e)
				}
				e.print(c.OutOrStdout())
				return nil
			})
		},
	}
}

func explain(l look, host string) Explanation {
	e := Explanation{At: l.in.Now, Role: l.in.View.Role(host), Readings: []fitness.Reading{}, ByOthers: []fitness.Reading{}}
	e.Host, _ = l.in.View.HostNamed(host)
	e.leads = leads(e.Host.Facts.Endpoint, l.in.View)
	for _, v := range l.d.Verdicts {
		if v.Host == host {
			e.Verdict = v
		}
	}
	for _, r := range l.in.Readings {
		switch {
		case r.Host == host:
			e.Readings = append(e.Readings, r)
		case r.Peer == host && r.Signal == fitness.RTT:
			e.ByOthers = append(e.ByOthers, r)
		}
	}
	return e
}

// leads says where a host's datastore endpoint leads, "" where it has none.
func leads(e *fitness.EndpointFacts, v membership.View) string {
	switch {
	case e == nil:
		return ""
	case e.Error != "":
		return e.Error
	case e.Reads == "":
		return "nowhere yet"
	}
	called := func(id string) string {
		for _, m := range v.Members {
			if m.ID == id {
				return m.Label()
			}
		}
		return id
	}
	return fmt.Sprintf("reads to %s, writes to %s; %d connections", called(e.Reads), called(e.Writes), e.Clients)
}

func (e Explanation) print(w io.Writer) {
	fmt.Fprintf(w, "%s (%s, %s): %s", e.Host.Name, besides(e.Role, e.Host.Grade()), e.Host.Mark.Word(), e.Verdict.Status)
	if since := stood(e.Verdict, e.At); since != "" {
		fmt.Fprintf(w, " since %s", since)
	}
	fmt.Fprintln(w)
	if !e.Host.Reachable {
		fmt.Fprintln(w, wrapOn(w, "its agent does not answer: "+e.Host.Error, "  "))
	}
	if shown := e.shown(); len(shown) > 0 {
		fmt.Fprintln(w)
		rows := [][]string{{"SIGNAL", "PEER", "FIGURE", "LIMIT", "HEADROOM", "STATE", "FOR", "SINCE"}}
		for _, r := range shown {
			rows = append(rows, e.row(r))
		}
		table(w, rows)
		fmt.Fprintf(w, "\nFOR: evaluations in a row, %d is \"for a whole window\"\n", fitness.Whole)
	}
	for _, r := range e.shown() {
		if r.Note != "" {
			fmt.Fprintln(w, wrapOn(w, fmt.Sprintf("%s %s: %s", r.Signal, e.peer(r), r.Note), "  "))
		}
		if r.Histogram != nil {
			fmt.Fprintln(w, wrapOn(w, histogram(r), "  "))
		}
	}
	e.facts(w)
}

// shown are its own readings, and what others measure of it where that is not fit
// too, or all that there is.
func (e Explanation) shown() []fitness.Reading {
	shown := slices.Clone(e.Readings)
	for _, r := range e.ByOthers {
		if r.Band != fitness.Under || len(e.Readings) == 0 {
			shown = append(shown, r)
		}
	}
	return shown
}

// peer is the other end of a reading.
func (e Explanation) peer(r fitness.Reading) string {
	if r.Peer == e.Host.Name {
		return "from " + r.Host
	}
	return r.Peer
}

// histogram says what etcd's own histogram has, and whether it decided.
func histogram(r fitness.Reading) string {
	b := r.Histogram
	text := fmt.Sprintf("%s: etcd's own histogram has ", r.Signal)
	if b.N < fitness.WindowSize {
		return text + fmt.Sprintf("%d of the %d observations that a p99 needs; the probe decides", b.N, fitness.WindowSize)
	}
	if b.Hi == fitness.Inf {
		text += "p99 above " + b.Lo.Text("s")
	} else {
		text += fmt.Sprintf("p99 between %s and %s", b.Lo.Text("s"), b.Hi.Text("s"))
	}
	if r.DecidedBy == "histogram" {
		text += fmt.Sprintf(" over %d observations; it decides", b.N)
		if r.Probe != nil {
			text += ", and not the probe with " + r.Probe.Text("s")
		}
		return text
	}
	return text + fmt.Sprintf(" over %d observations; it cannot say, the probe decides", b.N)
}

func (e Explanation) row(r fitness.Reading) []string {
	u := r.Signal.Unit()
	figure, room := "-", "-"
	limit := r.Limit.Candidate
	if e.Role != "standby" && e.Role != membership.UnknownRole {
		limit = r.Limit.Voter
	}
	if r.Count == fitness.WindowSize {
		figure = r.Figure.Text(u)
		left := limit - r.Figure
		if r.Signal == fitness.Memory {
			left = -left
		}
		if left >= 0 {
			room = left.Text(u)
		} else {
			room = "none"
		}
	}
	peer := e.peer(r)
	if peer == "" {
		peer = "-"
	}
	return []string{string(r.Signal), peer, figure, limit.Text(u), room, r.Band.String(), strconv.Itoa(r.Held), ago(r.Since, e.At)}
}

func (e Explanation) facts(w io.Writer) {
	f := e.Host.Facts
	fmt.Fprintln(w)
	if e.Host.Software == "" {
		fmt.Fprintln(w, "facts     its agent has told none")
	} else {
		fmt.Fprintf(w, "link      %s %s %s\n", f.Link.Class, f.Link.Device, f.Link.Note)
	}
	for _, p := range f.Paths {
		fmt.Fprintf(w, "path      to %s %s\n", p.Peer, pathLine(p, e.At))
	}
	if f.OverlayNote != "" {
		fmt.Fprintln(w, "overlay   "+f.OverlayNote)
	}
	if f.OverlayExpires != 0 {
		fmt.Fprintf(w, "key       of Tailscale ends on %s\n", time.UnixMicro(f.OverlayExpires).UTC().Format("2 January 2006"))
	}
	if f.Disk != "" {
		fmt.Fprintf(w, "disk      %s, %s free\n", f.Disk, fitness.Figure(f.DiskFree).Text("B"))
	}
	if f.Zone != "" {
		fmt.Fprintln(w, "zone      "+f.Zone)
	}
	if e.Host.Software != "" {
		fmt.Fprintf(w, "memory    %s in all\nsoftware  %s\n", fitness.Figure(f.MemoryTotal).Text("B"), e.Host.Software)
	}
	if e.leads != "" {
		fmt.Fprintln(w, "datastore "+e.leads)
	}
	if p := f.Prepared; p != nil && !p.Ready && e.Role == "standby" {
		fmt.Fprintln(w, wrapOn(w, "not prepared: "+strings.Join(p.Lacks, "; "), "  "))
	}
	for _, p := range f.Probes {
		if !p.OK {
			fmt.Fprintln(w, wrapOn(w, fmt.Sprintf("probe %s fails: %s", p.Name, p.Error), "  "))
		}
	}
	for _, s := range []struct {
		name string
		say  *membership.Say
	}{{"eligible", e.Host.Mark.Eligible}, {"pinned", e.Host.Mark.Pinned}} {
		if s.say != nil {
			fmt.Fprintf(w, "mark      %s=%t by %s, %s %s\n", s.name, s.say.Value, s.say.By, ago(s.say.At, e.At), s.say.Reason)
		}
	}
}
