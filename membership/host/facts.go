package host

import (
	"context"

	"suffrage/fitness"
)

// Facts tells what is. An error means that it is not known: then nothing may be
// told of this server.
func (s *Server) Facts(ctx context.Context) (fitness.ServerFacts, error) {
	var (
		out fitness.ServerFacts
		f   fence
		n   starts
		t   term
	)
	r, err := s.role()
	if err != nil {
		return out, err
	}
	out.Role = r.Role
	unit, err := s.o.Unit.State(ctx)
	if err != nil {
		return out, err
	}
	out.Running = unit.Running
	fenced, err := s.files.read(fenceFile, &f)
	if err != nil {
		return out, err
	}
	if _, err := s.files.read(startsFile, &n); err != nil {
		return out, err
	}
	if fenced {
		out.Fenced = !f.Proven.IsZero()
		// Two counts of different sources; the higher one counts.
		out.Starts = n.Count - f.Starts
		if out.Fenced {
			since := unit.Starts - f.UnitStarts
			if since < 0 {
				since = unit.Starts // the unit's manager began again, after the fence
			}
			if unit.Invocation != "" && unit.Invocation != f.Invocation {
				since = max(since, 1) // it names starts and does not count them
			}
			out.Starts = max(out.Starts, since)
		}
	}
	if out.Datastore, err = hasDatastore(s.o.Datastore); err != nil {
		return out, err
	}
	if _, err := s.files.read(termFile, &t); err != nil {
		return out, err
	}
	out.Term = t.Term
	if s.o.K3s != nil && out.Role == Voter {
		if g, err := s.grade(unit); err == nil { // else it is not known, and all the rest is
			out.Grade, out.Stepped = g.told(), g.set == fitness.EtcdOnly && g.own == fitness.Full
		}
	}
	out.Snapshots, err = Snapshots(s.o.Snapshots)
	return out, err
}
