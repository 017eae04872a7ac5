package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// Options are what a Server is made of.
type Options struct {
	// Host is this host's name in the roster.
	Host string
	// Data is where the host's files are; Datastore is etcd's own directory, and
	// Snapshots that of the snapshots.
	Data, Datastore, Snapshots string
	// Peer is the peer URL that this host's member has; orders with another are
	// refused. Empty: it is not compared.
	Peer string
	Unit Unit
	// K3s is what differs where K3s runs etcd; nil where a member of Suffrage does.
	K3s *K3s
	// Save saves and verifies a snapshot of this host's own voter in Snapshots.
	// What it gives needs no Operation.
	Save func(context.Context) (fitness.SnapshotFacts, error)
}

// Server carries out orders, one at a time.
type Server struct {
	o     Options
	files files

	mu sync.Mutex // held while an order is carried out
}

// New makes Data where it is missing.
func New(o Options) (*Server, error) {
	if err := os.MkdirAll(o.Data, 0o700); err != nil {
		return nil, fmt.Errorf("host: make the data directory: %w", err)
	}
	s := &Server{o: o, files: files{path: o.Data}}
	// What an earlier process renamed may not be on the disk yet.
	return s, s.files.sync()
}

// Order carries out one order and says how it ended. The context bounds it.
func (s *Server) Order(ctx context.Context, o Order) Result {
	if err := o.Validate(); err != nil {
		return Refuse(BadOrder, "%v", err)
	}
	if !s.mu.TryLock() {
		return Refuse(OrderUnderWay, "this host carries out another order: give it again when that has ended")
	}
	defer s.mu.Unlock()
	err := s.accept(o.Term)
	if err == nil {
		err = s.do(ctx, o)
	}
	r := resultOf(err)
	r.Term = o.Term
	if lower, ok := errors.AsType[*LowerTermError](err); ok {
		r.Term = lower.Seen
	}
	return r
}

func (s *Server) do(ctx context.Context, o Order) error {
	switch o.Verb {
	case membership.SaveSnapshot:
		return s.snapshot(ctx, o)
	case membership.StartMember:
		return s.start(ctx, o)
	case membership.Fence:
		return s.fence(ctx, o)
	case membership.Unfence:
		return s.unfence(ctx)
	case membership.Retire:
		return s.retire(ctx, o)
	case membership.Regrade:
		return s.regrade(ctx, o)
	}
	panic("host: no such verb: " + string(o.Verb)) // Validate has refused it
}

// start makes this host a server: what it will need first, then the fence, and
// the start last of all.
func (s *Server) start(ctx context.Context, o Order) error {
	r, err := s.role()
	if err != nil {
		return err
	}
	unit, err := s.o.Unit.State(ctx)
	if err != nil {
		return err
	}
	same := r.Role == Voter && r.Member == o.Member && (s.o.K3s == nil || r.Operation == o.Operation)
	has, err := hasDatastore(s.o.Datastore)
	switch peer := o.Peers[s.o.Host]; {
	case err != nil:
		return err
	case (o.Member == "") != (s.o.K3s != nil):
		return refusal(BadOrder, "it names the member %q, and %s", o.Member, s.flavour())
	case unit.Running && same:
		return s.liftFence(ctx)
	case unit.Running:
		return refusal(ServerRuns, "the etcd server of %s runs already, as member %q", s.o.Host, r.Member)
	case peer == "":
		return refusal(BadOrder, "the peers do not name %s", s.o.Host)
	case s.o.Peer != "" && peer != s.o.Peer:
		return refusal(PeerAddressChanged, "%s is to join with the peer URL %s, and its settings say %s (member.advertise_peer)", s.o.Host, peer, s.o.Peer)
	case has && !same:
		return refusal(membership.DatastorePresent, "a datastore %s lies in %s, and etcd would go on with it instead of joining: if nobody needs that member, move it aside", age(s.o.Datastore), s.o.Datastore)
	}
	at, err := s.o.K3s.server(s.o.Host, o.Peers)
	if err == nil {
		err = s.o.K3s.heeded()
	}
	if err != nil {
		return err
	}
	// The role first: with the members to join written, a host that has no fence
	// may start any moment, and has to know as which member.
	if !same {
		if err := s.files.write(roleFile, role{Voter, o.Member, o.Operation, time.Now().UTC()}); err != nil {
			return err
		}
	}
	if has && !hasLog(s.o.Datastore) {
		if err := s.aside(o.Member); err != nil {
			return err
		}
		has = false
	}
	switch {
	case s.o.K3s != nil:
		if err := s.o.K3s.makeRoom(ctx, s.files, at); err != nil {
			return err
		}
	case !has:
		if err := s.files.write(joinFile, Join{o.Operation, o.Member, o.Peers}); err != nil {
			return err
		}
	}
	if err := s.liftFence(ctx); err != nil {
		return err
	}
	s.files.at("start", "unit")
	return s.o.Unit.Start(ctx)
}

// age tells when a datastore was last written to.
func age(dir string) string {
	info, err := os.Stat(dir + "/member")
	if err != nil {
		return "of unknown age"
	}
	return "last changed at " + info.ModTime().UTC().Format(time.RFC3339)
}

// retire makes this host a standby: fenced first, so that nothing that happens
// on the way can bring the server back.
func (s *Server) retire(ctx context.Context, o Order) error {
	r, err := s.role()
	if err != nil {
		return err
	}
	at := ""
	if len(o.Peers) > 0 {
		if at, err = s.o.K3s.server(s.o.Host, o.Peers); err != nil {
			return err
		}
	}
	if err := s.fence(ctx, o); err != nil {
		return err
	}
	s.files.at("stop", "unit")
	if err := s.o.Unit.Stop(ctx); err != nil {
		return err
	}
	if unit, err := s.o.Unit.State(ctx); err != nil || unit.Running {
		return errors.Join(err, errors.New("the etcd server was told to stop and may still run"))
	}
	// While it ran, systemd could not be asked to try the fence.
	if err := s.tryFence(ctx); err != nil {
		return err
	}
	member, err := s.whose(o, r)
	if err != nil {
		return err
	}
	if err := s.aside(member); err != nil {
		return err
	}
	if err := s.files.remove(joinFile); err != nil {
		return err
	}
	// The role last: a host that is told as a standby is all that a standby is.
	if err := s.o.K3s.startAgent(ctx, s.files, at); err != nil {
		return err
	}
	if r.Role == Standby && r.Member == "" && r.Operation == o.Operation {
		return nil
	}
	return s.files.write(roleFile, role{Role: Standby, Operation: o.Operation, At: time.Now().UTC()})
}

// whose is the member that the datastore was of, as far as anybody said.
func (s *Server) whose(o Order, r role) (string, error) {
	var f fence
	if _, err := s.files.read(fenceFile, &f); err != nil {
		return "", err
	}
	for _, m := range []string{o.Member, r.Member, f.Member} {
		if m != "" {
			return m, nil
		}
	}
	return "", nil
}
