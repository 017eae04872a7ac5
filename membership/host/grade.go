package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

const (
	// k3sGradeFile is the drop-in that makes a server etcd-only. Without it K3s's own
	// settings count.
	k3sGradeFile = "99-suffrage-grade.yaml"
	gradeFile    = "grade.json"
	// disableAPI is the setting that tells the grades apart; the two others are the
	// leader-elected controllers, which do nothing without an API server.
	disableAPI = "disable-apiserver"
)

const k3sGrade = `# Written by Suffrage: an etcd-only server, which keeps its vote. To be whole again:
# suffrage regrade HOST full
disable-apiserver: true
disable-controller-manager: true
disable-scheduler: true
`

// Restarter is a Unit that can stop and start its process as one thing, which
// nobody's death in between leaves half done. While the fence is up it stops
// nothing and gives ErrFenced.
type Restarter interface {
	StartAgain(ctx context.Context) error
}

// before is a process that was started before its settings were last changed here.
type before struct {
	// Ran is its grade.
	Ran        fitness.Grade `json:"ran"`
	Starts     int           `json:"starts"`
	Invocation string        `json:"invocation,omitempty"`
	Operation  string        `json:"operation,omitempty"`
	At         time.Time     `json:"at,omitzero"`
}

// is reports whether it is the one that runs.
func (b before) is(u UnitState) bool {
	return b.Ran != "" && u.Running && b.Starts == u.Starts && b.Invocation == u.Invocation
}

// graded is what is known of a server's grade.
type graded struct {
	set  fitness.Grade // by the settings, for the next start
	own  fitness.Grade // by those that are not Suffrage's
	runs fitness.Grade // of the process, empty for none
}

// grade reads K3s's settings as it does itself, and whether the process that runs
// has them. What somebody else changes there, it takes for what the process runs
// with: only a change made here is told apart from its restart.
func (s *Server) grade(u UnitState) (g graded, err error) {
	if g.set, err = s.o.K3s.settings(true); err != nil {
		return g, err
	}
	if g.own, err = s.o.K3s.settings(false); err != nil {
		return g, err
	}
	if u.EtcdOnly { // by its command line, which no file changes
		g.set, g.own = fitness.EtcdOnly, fitness.EtcdOnly
	}
	var b before
	if _, err := s.files.read(gradeFile, &b); err != nil {
		return g, err
	}
	switch {
	case b.is(u):
		g.runs = b.Ran
	case u.Running:
		g.runs = g.set
	}
	return g, nil
}

// told is the grade that is known: settings and process agree, or none runs.
func (g graded) told() fitness.Grade {
	if g.runs != "" && g.runs != g.set {
		return ""
	}
	return g.set
}

// settings is the grade by K3s's files, with Suffrage's or without.
func (k *K3s) settings(ours bool) (fitness.Grade, error) {
	var without []string
	if !ours {
		without = append(without, k3sGradeFile)
	}
	s, err := ReadSettings(k.Config, without...)
	if err != nil {
		return "", err
	}
	switch off, err := s.On(disableAPI); {
	case err != nil:
		return "", err
	case off:
		return fitness.EtcdOnly, nil
	}
	return fitness.Full, nil
}

// setGrade writes or takes away the drop-in, and reads back what counts then.
func (k *K3s) setGrade(f files, to fitness.Grade) error {
	d := files{path: k.Config, point: f.point}
	if err := os.MkdirAll(k.Config, 0o755); err != nil {
		return fmt.Errorf("host: make K3s's directory of settings: %w", err)
	}
	do := func() error { return d.replace(k3sGradeFile, []byte(k3sGrade)) }
	if to == fitness.Full {
		do = func() error { return d.remove(k3sGradeFile) }
	}
	if err := do(); err != nil {
		return err
	}
	is, err := k.settings(true)
	if err == nil && is != to {
		return failure(membership.GradeNotProven, "%s was written or removed, and K3s's settings say %s: a file of a later name, or one of another hand, has %s", d.file(k3sGradeFile), is, disableAPI)
	}
	return err
}

// whole makes a host that becomes a server one that is full, but for what K3s's own
// settings say.
func (k *K3s) whole(f files) error {
	if _, err := os.Stat(filepath.Join(k.Config, k3sGradeFile)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return files{path: k.Config, point: f.point}.remove(k3sGradeFile)
}

// regrade starts the server again with another grade, where it does not run with it
// already. That a process is older than its settings is on the disk before these.
func (s *Server) regrade(ctx context.Context, o Order) error {
	unit, restarts := s.o.Unit.(Restarter)
	if s.o.K3s == nil || !restarts {
		return refusal(membership.NoGrades, "%s runs no K3s that could be restarted", s.o.Host)
	}
	r, err := s.role()
	if err != nil {
		return err
	}
	u, err := s.o.Unit.State(ctx)
	if err != nil {
		return err
	}
	g, err := s.grade(u)
	switch fenced := Fenced(s.o.Data); {
	case err != nil:
		return err
	case r.Role != Voter:
		return refusal(BadOrder, "%s is a %s, and only a server has a grade", s.o.Host, r.Role)
	case fenced != nil:
		return refusal(BadOrder, "%s could not start again: %w", s.o.Host, fenced)
	case g.set == o.To && g.runs == o.To:
		return nil
	case o.To == fitness.Full && g.own != fitness.Full:
		return refusal(membership.GradeNotFull, "K3s's own settings on %s have %s, which no file of Suffrage takes back", s.o.Host, disableAPI)
	}
	if u.Running {
		if err := s.files.write(gradeFile, before{g.runs, u.Starts, u.Invocation, o.Operation, time.Now().UTC()}); err != nil {
			return err
		}
	}
	if g.set != o.To {
		if err := s.o.K3s.setGrade(s.files, o.To); err != nil {
			return err
		}
	}
	if g.runs == o.To {
		return nil // it was not restarted yet
	}
	s.files.at("restart", "unit")
	if err := unit.StartAgain(ctx); err != nil {
		return err
	}
	now, err := s.o.Unit.State(ctx)
	if err == nil && now.Running && now.Starts == u.Starts && now.Invocation == u.Invocation {
		return failure(membership.GradeNotProven, "K3s on %s was told to restart, and the process from before runs", s.o.Host)
	}
	return err
}
