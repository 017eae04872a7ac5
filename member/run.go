package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// ErrRemoved means that the cluster removed this member. Its ID is dead for
// ever; starting it again on the same data cannot help.
var ErrRemoved = errors.New("member: it was removed from the cluster")

// RemovedError is ErrRemoved for one member.
type RemovedError struct{ Member, DataDir string }

func (e *RemovedError) Error() string {
	return fmt.Sprintf("%v: member %s is gone for good; its data in %s is no longer part of the cluster: keep it aside, and add the host again as a new member if it is wanted",
		ErrRemoved, e.Member, e.DataDir)
}

func (e *RemovedError) Unwrap() error { return ErrRemoved }

// Start is how a member is started; the zero value is the ordinary way.
type Start struct {
	// Join starts on an empty data directory as a member that the cluster lists
	// already; Config.InitialCluster names all members, this one included. etcd
	// refuses it where the cluster does not list it.
	Join bool
	// Log gets etcd's warnings and errors; nil is slog's default.
	Log *slog.Logger
	// Registerer is where the timing is exported; nil is prometheus's default,
	// which is the one that etcd serves.
	Registerer prometheus.Registerer
	// Ready, if any, is called once the member has joined and serves.
	Ready func()
}

// Run runs a member on an existing datastore until ctx ends, then closes it and
// gives nil. A member that stops by itself gives an error with etcd's reason.
func Run(ctx context.Context, c Config) error { return Start{}.Run(ctx, c) }

// Run is Run with what Start says.
func (s Start) Run(ctx context.Context, c Config) error {
	if s.Log == nil {
		s.Log = slog.Default()
	}
	if s.Registerer == nil {
		s.Registerer = prometheus.DefaultRegisterer
	}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("member: configuration: %w", err)
	}
	c = c.filled()
	for _, check := range []func() error{
		func() error { return checkDatastore(c, s) },
		func() error { return checkCertificate(c, time.Now()) },
		func() error { return checkPorts(c) },
		func() error { return makeDataDir(c.DataDir) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	unregister, err := registerTiming(s.Registerer, c)
	if err != nil {
		return err
	}
	defer unregister()
	var stop stopReason
	cfg, err := etcdConfig(c, &logCore{log: s.Log, stop: &stop})
	if err != nil {
		return err
	}
	cfg.ClusterState = embed.ClusterStateFlagExisting // never new: Create is for that
	// While the other first members are not there yet, this waits for quorum
	// inside etcd, not here: StartEtcd returns before the member has joined.
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("member: start etcd on %s: %w", c.DataDir, err)
	}
	defer shut(e)
	return s.wait(ctx, e, &stop)
}

func (s Start) wait(ctx context.Context, e *embed.Etcd, stop *stopReason) error {
	ready := e.Server.ReadyNotify()
	for {
		select {
		case <-ready:
			ready = nil
			s.Log.Info("member serves", "member", e.Server.MemberID().String())
			if s.Ready != nil {
				s.Ready()
			}
		case <-ctx.Done():
			return nil
		case err := <-e.Err():
			// When etcd's server stops by itself its listeners may be heard first.
			if removed(e, stop.get()) {
				return stopped(e, stop.get())
			}
			return fmt.Errorf("member: etcd stopped serving: %w", err)
		case <-e.Server.StopNotify():
			return stopped(e, stop.get())
		}
	}
}

// shut closes etcd. Its Close waits for the client servers, and those wait for
// the member to be ready or to stop: one that never joined has to be stopped first.
func shut(e *embed.Etcd) {
	select {
	case <-e.Server.ReadyNotify():
	default:
		e.Server.HardStop()
	}
	e.Close()
}

// removed: it applied its own removal, or a peer of its cluster said so.
func removed(e *embed.Etcd, why error) bool {
	return e.Server.IsIDRemoved(uint64(e.Server.MemberID())) || why != nil && strings.Contains(why.Error(), "permanently removed")
}

func stopped(e *embed.Etcd, why error) error {
	id := e.Server.MemberID().String()
	switch {
	case removed(e, why):
		return &RemovedError{id, e.Config().Dir}
	case why != nil:
		return fmt.Errorf("member: etcd of member %s stopped: %w", id, why)
	}
	return fmt.Errorf("member: etcd of member %s stopped without a reason: see the log before this", id)
}

func etcdConfig(c Config, core *logCore) (*embed.Config, error) {
	e := embed.NewConfig()
	e.Name, e.Dir = c.Name, c.DataDir
	for _, u := range []struct {
		to  *[]url.URL
		url string
	}{
		{&e.ListenPeerUrls, c.ListenPeer}, {&e.ListenClientUrls, c.ListenClient},
		{&e.AdvertisePeerUrls, c.AdvertisePeer}, {&e.AdvertiseClientUrls, c.AdvertiseClient}, {&e.ListenMetricsUrls, c.Metrics},
	} {
		*u.to = nil
		if u.url == "" {
			continue
		}
		p, err := url.Parse(u.url)
		if err != nil {
			return nil, fmt.Errorf("member: %w", err)
		}
		*u.to = []url.URL{*p}
	}
	e.InitialCluster = initialCluster(c.InitialCluster)
	e.InitialClusterToken = "suffrage"
	e.TickMs, e.ElectionMs = uint(c.Heartbeat.Std()/time.Millisecond), uint(c.ElectionTimeout.Std()/time.Millisecond)
	e.QuotaBackendBytes = c.Quota
	e.StrictReconfigCheck = true
	e.MaxLearners = 1
	// Writers compact for themselves (the API server does, every 5 minutes);
	// this is for a cluster whose writers do not.
	e.AutoCompactionMode, e.AutoCompactionRetention = embed.CompactorModePeriodic, "1h"
	e.EnableGRPCGateway = false // JSON over HTTP: nobody here speaks it
	if c.Cert != "" {
		t := transport.TLSInfo{CertFile: c.Cert, KeyFile: c.Key, TrustedCAFile: c.CA, ClientCertAuth: true}
		e.PeerTLSInfo, e.ClientTLSInfo = t, t
	}
	e.LogLevel = "warn"
	// Where etcd would panic it cannot go on either; its stack helps nobody who
	// has a full disk, and the exit code would be 2, that of wrong settings.
	e.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(core, zap.WithPanicHook(zapcore.WriteThenFatal)))
	return e, nil
}
