package control

import (
	"errors"
	"slices"
	"time"

	"suffrage/membership"
)

// awayTime is how long the API server may not answer a leader before it gives way.
// One that starts again is back by then.
const awayTime = time.Minute

// ErrAway ends a leader that cannot read what the owner says, since the API server
// that it asks does not answer, as on a host whose K3s is etcd-only. Being elected in
// etcd it would lead on, decide nothing, and keep out another that may do better.
var ErrAway = errors.New("control: the API server has not answered this controller for a minute; another controller has to lead")

// giveWay ends a leader while its API server is away and another controller waits.
// That it does not lead again at once, and that two without an API server do not take
// turns without end, is for whoever runs it: one that does not reach its API server is
// not to wait behind a leader (cmd/suffrage, candidacy.go).
func (l *Loop) giveWay(in membership.Inputs) error {
	if l.Acting == nil || l.Acting.Away == nil || !l.Acting.Away(l.Gatherer.unread) {
		l.away = time.Time{}
		return nil
	}
	if l.away.IsZero() {
		l.away = time.Now()
	}
	waits := slices.ContainsFunc(in.Controllers, func(host string) bool { return host != l.Acting.Host })
	if !waits || time.Since(l.away) < awayTime {
		return nil
	}
	return ErrAway
}
