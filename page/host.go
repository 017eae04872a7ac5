package page

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// HostModel is one host with its windows, and what GET /v1/hosts/NAME gives.
type HostModel struct {
	Version    int             `json:"version"`
	At         time.Time       `json:"at"`
	AgeSeconds float64         `json:"age_seconds"`
	Host       membership.Host `json:"host"`
	Role       string          `json:"role"`
	Mark       string          `json:"mark"`
	Verdict    fitness.Verdict `json:"verdict"`
	// Windows are those that gate first, round trips before the host's own.
	Windows []Window `json:"windows"`
}

// Window is the newest window of one signal with what was read from it.
type Window struct {
	// Reading has the form of docs/inputs.md: figure, limits, band, how long it held.
	Reading fitness.Reading `json:"reading"`
	Unit    string          `json:"unit"`
	// Gates: it can make the host unfit.
	Gates bool `json:"gates"`
	// Limit is the one that counts for the host in its role.
	Limit fitness.Figure `json:"limit"`
	// Samples are the newest 100 at most, oldest first: a number in the signal's
	// unit, "inf" for a lost ping, null for one that failed.
	Samples []*fitness.Figure `json:"samples"`
}

var errNoHost = errors.New("page: the roster has no host of that name")

// HostOf makes the model of one host.
func HostOf(l Look, name string, now time.Time) (HostModel, error) {
	h, ok := l.Inputs.View.HostNamed(name)
	if !ok {
		return HostModel{}, errNoHost
	}
	m := HostModel{Version: ModelVersion, At: l.Inputs.Now, AgeSeconds: max(0, now.Sub(l.Inputs.Now).Seconds()), Host: h,
		Role: l.Inputs.View.Role(name), Mark: markOf(l, h), Verdict: verdictOf(l.Decision, name), Windows: []Window{}}
	type key struct {
		signal fitness.Signal
		peer   string
	}
	series := map[key][]fitness.Sample{}
	if l.Series != nil {
		for _, s := range l.Series(name) {
			series[key{s.Signal, s.Peer}] = s.Samples
		}
	}
	for _, r := range l.Inputs.Readings {
		if r.Host != name {
			continue
		}
		w := Window{Reading: r, Unit: r.Signal.Unit(), Gates: r.Signal.Gates(), Limit: r.Limit.Voter, Samples: samplesOf(r.Signal, series[key{r.Signal, r.Peer}])}
		if m.Role == "standby" {
			w.Limit = r.Limit.Candidate
		}
		m.Windows = append(m.Windows, w)
	}
	order := append([]fitness.Signal{fitness.RTT}, fitness.HostSignals[:]...)
	place := func(w Window) int {
		if i := slices.Index(order, w.Reading.Signal); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(m.Windows, func(a, b Window) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.Reading.Signal, b.Reading.Signal), cmp.Compare(a.Reading.Peer, b.Reading.Peer))
	})
	return m, nil
}

func samplesOf(sig fitness.Signal, all []fitness.Sample) []*fitness.Figure {
	out := []*fitness.Figure{}
	for _, s := range all[max(0, len(all)-fitness.WindowSize):] {
		var f *fitness.Figure
		switch {
		case s.State == fitness.Lost && sig.OfPair():
			inf := fitness.Inf
			f = &inf
		case s.State == fitness.Measured:
			v := fitness.Figure(s.Value)
			f = &v
		}
		out = append(out, f)
	}
	return out
}
