package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/etcd"
)

// ErrUnreachable means that not one endpoint gave a member list; the report
// that comes with it says why.
var ErrUnreachable = errors.New("observe: no endpoint gave a member list")

// Options are one run.
type Options struct {
	Etcd etcd.Config
	// For is how long to measure, 1s to 1h.
	For time.Duration
	// Metrics are pages to read instead of looking for them; each says itself
	// which member it is of.
	Metrics []string
	// ElectionTimeout is used where no member tells; 0 assumes K3s's or etcd's
	// default.
	ElectionTimeout time.Duration
	K3s             bool
	// Progress, if any, is called about once a second.
	Progress func(elapsed time.Duration, members, responding int)
}

// Run looks, measures for o.For, looks again and judges. An interrupted run
// gives ctx's error.
func Run(ctx context.Context, o Options) (Report, error) {
	observer := etcd.NewObserver(o.Etcd, etcd.Options{ReadOnly: true})
	first := observer.Observe(ctx)
	if err := ctx.Err(); err != nil {
		return Report{}, err
	}
	if len(first.Members) == 0 {
		return report(o, first, first, nil), ErrUnreachable
	}
	measured := o.measure(ctx, first)
	if err := ctx.Err(); err != nil {
		return Report{}, err
	}
	last := observer.Observe(ctx)
	if err := ctx.Err(); err != nil {
		return Report{}, err
	}
	if len(last.Members) == 0 { // it went away meanwhile: the last list known, with today's error
		last.Members = first.Members
		for i := range last.Members {
			last.Members[i].Responding, last.Members[i].Error = false, "it does not answer any more"
		}
	}
	return report(o, first, last, measured), nil
}

// measured is what was measured of one member.
type measured struct {
	trip  RoundTrip
	page  pages
	tried []etcd.Trouble
}

// measure watches every member that answers, all at once, until the time is over.
func (o Options) measure(ctx context.Context, ob etcd.Observation) map[string]*measured {
	end := time.Now().Add(o.For)
	out := map[string]*measured{}
	var wg sync.WaitGroup
	up := 0
	found := o.findPages(ctx, ob)
	for _, m := range ob.Members {
		r := &measured{}
		out[m.ID] = r
		if p, ok := found[m.ID]; ok {
			r.page, r.tried = p.pages, p.tried
		}
		url := ob.Reached[m.ID]
		if url == "" {
			continue
		}
		if m.Responding {
			up++
		}
		wg.Go(func() { r.trip = o.trips(ctx, url, end) })
	}
	wg.Go(func() { o.progress(ctx, end, len(ob.Members), up) })
	wg.Wait()
	var again sync.WaitGroup
	for _, r := range out {
		if r.page.url != "" {
			again.Go(func() { r.tried = append(r.tried, o.readAgain(ctx, &r.page)...) })
		}
	}
	again.Wait()
	return out
}

func (o Options) progress(ctx context.Context, end time.Time, members, up int) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		left := time.Until(end)
		if o.Progress != nil {
			o.Progress(o.For-max(left, 0), members, up)
		}
		if left <= 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(left):
		case <-t.C:
		}
	}
}

func report(o Options, first, last etcd.Observation, by map[string]*measured) Report {
	r := Report{Version: ReportVersion, At: last.At, For: fitness.Duration(o.For), ClusterID: last.ClusterID, Error: last.Error,
		Members: []Member{}, Alarms: last.Alarms, Troubles: slices.Clone(last.Troubles), Refusals: []membership.Refusal{}}
	if last.DowngradeTold {
		r.Downgrade = &last.Downgrade
	}
	r.timing(o, by)
	r.LeaderChanges = term(last) - min(term(first), term(last))
	limits := fitness.DefaultLimits()
	limits.ElectionTimeout = r.ElectionTimeout
	list := listOf(last.Members)
	var view membership.View
	last.Fill(&view)
	leader, top := view.Leader(), uint64(0)
	for _, m := range last.Members {
		top = max(top, m.RaftIndex)
	}
	for _, m := range last.Members {
		out := member(m, last.Reached[m.ID], list, top)
		out.Leader = leader != "" && leader == m.ID
		got := by[m.ID]
		if got == nil {
			got = &measured{}
		}
		out.RoundTrip, out.Metrics = got.trip, got.page.url
		out.WALFsync = got.page.disk(limits.For(fitness.WALFsync, 0).Voter, walFsync)
		out.BackendCommit = got.page.disk(limits.For(fitness.BackendCommit, 0).Voter, backendCommit)
		r.Members = append(r.Members, out)
		if last.Reached[m.ID] != "" || got.page.url != "" {
			r.Troubles = append(r.Troubles, got.tried...)
		}
	}
	slices.SortStableFunc(r.Members, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Label(), b.Label()), cmp.Compare(a.ID, b.ID))
	})
	r.Refusals = append(r.Refusals, guards(view, limits)...)
	if r.Alarms == nil {
		r.Alarms = []membership.Alarm{}
	}
	if r.Troubles == nil {
		r.Troubles = []etcd.Trouble{}
	}
	return r
}

// timing takes the election timeout from the cluster where it tells.
func (r *Report) timing(o Options, by map[string]*measured) {
	told := map[fitness.Duration]bool{}
	for _, m := range by {
		if d := m.page.last.ElectionTimeout; d > 0 {
			told[d] = true
		}
	}
	switch {
	case len(told) > 0:
		for d := range told { // the shortest gives the strictest limits
			if r.ElectionTimeout == 0 || d < r.ElectionTimeout {
				r.ElectionTimeout = d
			}
		}
		r.ElectionTimeoutFrom = "read"
		if len(told) > 1 {
			r.Troubles = append(r.Troubles, etcd.Trouble{Subject: "election timeout", What: fmt.Sprintf("the members run with %d different ones", len(told)),
				Next: "give all members the same --election-timeout"})
		}
	case o.ElectionTimeout > 0:
		r.ElectionTimeout, r.ElectionTimeoutFrom = fitness.Duration(o.ElectionTimeout), "given"
	case o.K3s:
		r.ElectionTimeout, r.ElectionTimeoutFrom = fitness.Duration(5*time.Second), "assumed"
	default:
		r.ElectionTimeout, r.ElectionTimeoutFrom = fitness.Duration(time.Second), "assumed"
	}
}

func term(ob etcd.Observation) uint64 {
	var t uint64
	for _, m := range ob.Members {
		t = max(t, m.RaftTerm)
	}
	return t
}

// listOf is the list in the form of Member.Opinion.
func listOf(members []membership.Member) []string {
	var out []string
	for _, m := range members {
		id := m.ID
		if m.Learner {
			id += "?"
		}
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

func member(m membership.Member, url string, list []string, top uint64) Member {
	out := Member{ID: m.ID, Name: m.Name, Role: "voter", URL: url, Responding: m.Responding, Error: m.Error, Version: m.Version,
		DBSize: m.DBSize, DBInUse: m.DBInUse, Quota: m.Quota, List: "not told"}
	switch {
	case m.Learner:
		out.Role = "learner"
	case !m.Started():
		out.Role = "unstarted"
	}
	if m.RaftIndex > 0 {
		lag := top - m.RaftIndex
		out.Lag = &lag
	}
	switch {
	case m.Opinion == nil:
	case slices.Equal(m.Opinion, list):
		out.List = "same"
	default:
		out.List, out.Opinion = "differs", m.Opinion
	}
	if out.Error == "" && len(m.StatusErrors) > 0 {
		out.Error = strings.Join(m.StatusErrors, "; ")
	}
	return out
}

// guards asks the same guards as the controller, those that need no agents.
// The target is what the cluster has, if that is a number one may have.
func guards(v membership.View, limits fitness.Limits) []membership.Refusal {
	target := min(max(3, len(v.Voters())), fitness.MaxVoters)
	if target%2 == 0 {
		target--
	}
	out := membership.Guards(membership.Inputs{Version: membership.InputsVersion, Now: v.At, View: v,
		Policy: membership.Policy{Mode: "dry-run", Target: target, Maximum: target + 2, Period: fitness.Duration(3 * time.Second), Limits: limits}})
	for i := range out {
		if out[i].Since.IsZero() {
			out[i].Since = v.At
		}
	}
	slices.SortStableFunc(out, func(a, b membership.Refusal) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Subject, b.Subject))
	})
	return out
}
