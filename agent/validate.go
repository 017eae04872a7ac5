package agent

import (
	"fmt"
	"math"
	"time"

	"suffrage/fitness"
	"suffrage/identity"
	"suffrage/membership/host"
)

// InvalidReportError says why a report is not believed. Nothing of such a
// report is used.
type InvalidReportError struct{ Host, Reason string }

func (e *InvalidReportError) Error() string {
	return fmt.Sprintf("agent: the report of host %s cannot be used: %s", e.Host, e.Reason)
}

// slack is by how much a time may lie beyond the report's own, in microseconds.
const slack = int64(time.Second / time.Microsecond)

// maxAhead is how far a schedule may reach, in microseconds: each of its times
// comes once a day, and a host waits for up to half of that after it.
const maxAhead = int64(48 * time.Hour / time.Microsecond)

// maxExpiry is how far the end of a key may lie, in microseconds: a hundred years,
// where Tailscale gives half a year.
const maxExpiry = int64(100 * 365 * 24 * time.Hour / time.Microsecond)

// maxOn bounds the members that an endpoint tells of: those that it leads to, and
// those that it is leaving.
const maxOn = 64

// validate checks a report from outside: that it is of this version, of that
// host, bounded, and that its samples can be true. Facts that only inform are
// checked for size.
func validate(r *fitness.Report, host string, roster *identity.Roster, after uint64) error {
	bad := func(format string, args ...any) error {
		return &InvalidReportError{host, fmt.Sprintf(format, args...)}
	}
	switch {
	case r.Version != fitness.ReportVersion:
		return bad("it is of version %d, this build reads %d: run the same version of suffrage on all hosts", r.Version, fitness.ReportVersion)
	case r.Host != host:
		return bad("the agent believes that it is host %.80q: correct host in its settings", r.Host)
	case r.Instance == "" || !printable(r.Instance, 64):
		return bad("instance %.80q", r.Instance)
	case len(r.Software) > 128:
		return bad("the name of its version has %d bytes", len(r.Software))
	case r.Period.Std() < minPeriod || r.Period.Std() > maxPeriod:
		return bad("its period is %v, allowed are %v to %v", r.Period, minPeriod, maxPeriod)
	case r.Now <= 0 || r.Now > math.MaxInt64/2:
		return bad("its clock shows %d µs since 1970", r.Now)
	case len(r.Series) > len(fitness.HostSignals)+2*MaxPeers:
		return bad("it has %d series", len(r.Series))
	}
	seen := map[[2]string]bool{}
	for i := range r.Series {
		s := &r.Series[i]
		name := [2]string{string(s.Signal), s.Peer}
		if reason := seriesReason(s, r, host, roster, after); reason != "" {
			return bad("series %.40q %.80q: %s", s.Signal, s.Peer, reason)
		}
		if seen[name] {
			return bad("series %.40q %.80q is there twice", s.Signal, s.Peer)
		}
		seen[name] = true
	}
	if reason := factsReason(&r.Facts, r.Now); reason != "" {
		return bad("%s", reason)
	}
	return nil
}

// seriesReason says what is wrong with a series, "" when nothing is.
func seriesReason(s *fitness.Series, r *fitness.Report, host string, roster *identity.Roster, after uint64) string {
	known := s.Signal == fitness.RTT || s.Signal == fitness.Clock
	for _, k := range fitness.HostSignals {
		known = known || s.Signal == k
	}
	switch {
	case !known:
		return "the signal is not known: run the same version of suffrage on all hosts"
	case s.Signal.OfPair() != (s.Peer != ""):
		return "a pair's signal needs a peer, a host's has none"
	case s.Peer == host:
		return "a host is not its own peer"
	case len(s.Samples) > fitness.SeriesSize:
		return fmt.Sprintf("%d samples, at most %d", len(s.Samples), fitness.SeriesSize)
	case len(s.Bounds) > maxBounds:
		return fmt.Sprintf("%d readings of a histogram, at most %d", len(s.Bounds), maxBounds)
	case len(s.Error) > 2*maxText:
		return fmt.Sprintf("an error text of %d bytes", len(s.Error))
	}
	if _, ok := roster.ByName(s.Peer); s.Peer != "" && !ok {
		return "the peer is not in this host's roster: make the roster equal on all hosts"
	}
	seq, at := after, int64(0)
	for _, m := range s.Samples {
		if reason := sampleReason(m, s.Signal, r, seq, at); reason != "" {
			return fmt.Sprintf("sample %d: %s", m.Seq, reason)
		}
		seq, at = m.Seq, m.At
	}
	at = 0
	for _, b := range s.Bounds {
		if b.At < at || b.At > r.Now+slack || !(b.Lo >= 0 && b.Lo < b.Hi) {
			return fmt.Sprintf("its histogram says %v to %v at %d", b.Lo, b.Hi, b.At)
		}
		at = b.At
	}
	return ""
}

func sampleReason(m fitness.Sample, signal fitness.Signal, r *fitness.Report, seq uint64, at int64) string {
	switch {
	case m.Seq <= seq || m.Seq > r.Last:
		return fmt.Sprintf("out of order after %d, with %d the last", seq, r.Last)
	case m.At <= 0 || m.At < at || m.At > r.Now+slack:
		return fmt.Sprintf("its time %d is before the sample's before it, or after the report's %d", m.At, r.Now)
	case math.IsNaN(m.Value) || math.IsInf(m.Value, 0) || m.Value < 0 && signal != fitness.Clock:
		return fmt.Sprintf("value %v", m.Value)
	case !(m.Late >= 0) || math.IsInf(m.Late, 0):
		return fmt.Sprintf("late by %v", m.Late)
	case m.State != fitness.Measured && m.State != fitness.Failed && (m.State != fitness.Lost || !signal.OfPair()):
		return fmt.Sprintf("state %.40q", m.State)
	}
	return ""
}

func factsReason(f *fitness.Facts, now int64) string {
	switch {
	case !printable(f.Zone, maxZone):
		return "its zone is not printable or too long"
	case f.MemoryTotal < 0 || f.DiskFree < 0:
		return "less than nothing of memory or disk"
	case f.OverlayExpires < 0 || f.OverlayExpires > now+maxExpiry:
		return fmt.Sprintf("its key of the overlay ends at %d", f.OverlayExpires)
	case len(f.Paths) > MaxPeers || len(f.Probes) > 32:
		return fmt.Sprintf("%d paths and %d probes", len(f.Paths), len(f.Probes))
	case f.Member != nil && (f.Member.Started < 0 || f.Member.Started > now+slack):
		return fmt.Sprintf("its member started at %d, after the report's %d", f.Member.Started, now)
	case f.ScheduledSnapshot != nil && (f.ScheduledSnapshot.Next < 0 || f.ScheduledSnapshot.Next > now+maxAhead):
		return fmt.Sprintf("its next scheduled snapshot is at %d, more than %d s after the report's %d", f.ScheduledSnapshot.Next, maxAhead/int64(time.Second/time.Microsecond), now)
	}
	switch f.Link.Class {
	case fitness.Wired, fitness.Wifi, fitness.Cellular, fitness.Virtual, fitness.UnknownLink:
	default:
		return fmt.Sprintf("link class %.40q", f.Link.Class)
	}
	texts := []string{f.Link.Device, f.Link.Note, f.OverlayNote, f.Disk, f.K3s}
	if f.Member != nil {
		texts = append(texts, f.Member.Note)
	}
	if s := f.Server; s != nil {
		if (s.Role != host.Voter && s.Role != host.Standby) || s.Starts < 0 || len(s.Snapshots) > host.MaxSnapshots {
			return fmt.Sprintf("its etcd server has role %.40q, %d starts and %d snapshots", s.Role, s.Starts, len(s.Snapshots))
		}
		for _, n := range s.Snapshots {
			if n.Revision < 0 || n.Size < 0 {
				return fmt.Sprintf("a snapshot of %d bytes at revision %d", n.Size, n.Revision)
			}
			texts = append(texts, n.Operation, n.File, n.Hash)
		}
	}
	if p := f.Prepared; p != nil {
		if len(p.Lacks) > maxLacks || p.Ready != (len(p.Lacks) == 0) {
			return fmt.Sprintf("ready is %t, and it lacks %d things", p.Ready, len(p.Lacks))
		}
		texts = append(texts, p.Lacks...)
	}
	if e := f.Endpoint; e != nil {
		if e.Clients < 0 || len(e.On) > maxOn {
			return fmt.Sprintf("its endpoint has %d clients, on %d members", e.Clients, len(e.On))
		}
		texts = append(append(texts, e.Reads, e.Writes, e.Error), e.On...)
	}
	for _, p := range f.Paths {
		if p.Kind != "direct" && p.Kind != "relayed" {
			return fmt.Sprintf("path kind %.40q", p.Kind)
		}
		if p.Since < 0 || p.Since > now+slack || p.Before != "" && p.Before != "direct" && p.Before != "relayed" {
			return fmt.Sprintf("a path since %d, before it %.40q", p.Since, p.Before)
		}
		texts = append(texts, p.Peer, p.Via)
	}
	for _, p := range f.Probes {
		if !(p.Seconds >= 0) || math.IsInf(p.Seconds, 0) {
			return fmt.Sprintf("probe %.40q took %v s", p.Name, p.Seconds)
		}
		texts = append(texts, p.Name, p.Error)
	}
	for _, t := range texts {
		if len(t) > 2*maxText {
			return fmt.Sprintf("a text of %d bytes", len(t))
		}
	}
	return ""
}
