package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// server is one k3s server.
type server struct {
	*store
	from     *other // the server to join; nil without
	password string
	fresh    bool // no datastore was there
	up       *supervisor
	kube     *balancer
}

// newServer makes the files that everything else needs.
func newServer(ctx context.Context, o Options, log *slog.Logger) (*server, error) {
	s := &server{store: &store{o: o, l: layout(o.DataDir), log: log}}
	if !o.DisableETCD {
		moved, err := s.l.buried(time.Now())
		if err != nil {
			return nil, err
		}
		if moved != "" {
			log.Info("tombstone file has been detected, removing data dir to rejoin the cluster", "backup", moved)
		}
		if s.name, err = s.l.memberName(o.NodeName); err != nil {
			return nil, err
		}
	}
	there, err := s.l.initialized()
	if err != nil {
		return nil, err
	}
	s.fresh = !there
	switch {
	case o.DisableETCD, s.fresh && o.Server != "":
		if o.Token == "" {
			return nil, errors.New("--token is required to join a cluster")
		}
		if s.from, err = newOther(ctx, o.Server, o.Token); err == nil {
			err = s.from.bootstrap(ctx, s.l)
		}
		if err != nil {
			return nil, fmt.Errorf("preparing server: %w", err)
		}
	case s.fresh && !o.ClusterInit:
		return nil, errors.New("neither --server nor --cluster-init, and no etcd datastore: K3s would use SQLite, the double has none")
	default:
		if err := newShared(s.l); err != nil {
			return nil, err
		}
	}
	if s.password, err = setToken(s.l, o.Token); err != nil {
		return nil, err
	}
	if err := newLeaves(s.l, o); err != nil {
		return nil, err
	}
	if s.up, err = newSupervisor(s.store, s.password); err != nil {
		return nil, err
	}
	s.kube, err = newBalancer(s)
	s.up.kube = s.kube
	return s, err
}

// run runs the server until ctx ends, or a part of it fails.
func (s *server) run(ctx context.Context) error {
	failed := make(chan error, 1)
	base, kube, control := newStage(failed), newStage(failed), newStage(failed)
	client, err := s.endpoints(ctx)
	if err != nil {
		return err
	}
	s.client = client
	defer client.Close()
	base.start("supervisor", s.up.run)
	if !s.o.DisableETCD {
		base.start("etcd", s.etcd)
	}
	api := &apiServer{supervisor: s.up, etcd: client.Endpoints()}
	kube.start("kube-apiserver", func(ctx context.Context) error {
		if !s.usable(ctx) || s.o.DisableAPIServer {
			return nil
		}
		if err := api.kubeconfig(); err != nil {
			return err
		}
		return api.run(ctx)
	})
	s.controllers(control)
	select {
	case <-ctx.Done():
		control.end(nil)
		kube.end(nil)
		base.end(nil)
		return nil
	case err := <-failed:
		// As K3s's Fatal: nothing is put in order.
		kube.end(errAtOnce)
		control.end(errAtOnce)
		base.end(errAtOnce)
		return err
	}
}

// endpoints makes the client: of this server's member, or of all voters.
func (s *server) endpoints(ctx context.Context) (*clientv3.Client, error) {
	if !s.o.DisableETCD {
		return s.dial(context.Background(), s.local())
	}
	members, err := s.from.members(ctx)
	if err != nil {
		return nil, err
	}
	return s.dial(context.Background(), votersOf(members, s.o.NodeIP, hostIn(s.o.Server))...)
}

// etcd starts the member on what is there, as one that joins, or as the first.
func (s *server) etcd(ctx context.Context) error {
	var err error
	switch {
	case !s.fresh:
		s.log.Info("starting etcd for existing cluster member", "member", s.name)
		err = s.write(initial{})
	case s.from != nil:
		err = s.join(ctx, s.from)
	default:
		s.log.Info("starting etcd for new cluster", "member", s.name)
		err = s.write(initial{advertise: s.url(2380), cluster: s.name + "=" + s.url(2380), state: "new"})
	}
	if err != nil {
		return err
	}
	return s.store.run(ctx)
}

// usable waits until etcd can be used from here: it answers, this server's member
// is no learner, the database is defragmented and no alarm is left. Whatever was
// to be learnt from alarms is lost by that, and fsync has outliers.
func (s *server) usable(ctx context.Context) bool {
	for said := ""; ; {
		err := s.test(ctx)
		if err == nil {
			s.log.Info("etcd data store connection OK")
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		if err.Error() != said {
			s.log.Info("failed to test etcd connection", "reason", err)
			said = err.Error()
		}
		select {
		case <-time.After(min(5*time.Second, s.o.Manage)):
		case <-ctx.Done():
			return false
		}
	}
}

func (s *server) test(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	at := s.client.Endpoints()[0]
	status, err := s.client.Status(ctx, at)
	if err != nil {
		return err
	}
	if s.o.DisableETCD {
		return nil
	}
	if status.IsLearner {
		return errors.New("this server has not yet been promoted from learner to voting member")
	}
	if _, err := s.client.Defragment(ctx, at); err != nil {
		return fmt.Errorf("failed to defragment etcd database: %w", err)
	}
	alarms, err := s.client.AlarmList(ctx)
	if err != nil {
		return err
	}
	for _, a := range alarms.Alarms {
		s.log.Warn("alarm on etcd member", "member", fmt.Sprintf("%x", a.MemberID), "alarm", a.Alarm.String())
	}
	if len(alarms.Alarms) > 0 {
		if _, err := s.client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
			return err
		}
		s.log.Info("alarms disarmed on etcd server")
	}
	if status, err = s.client.Status(ctx, at); err != nil {
		return err
	}
	if len(status.Errors) > 0 {
		return fmt.Errorf("etcd cluster errors: %s", strings.Join(status.Errors, ", "))
	}
	return nil
}
