package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// errRemoved: the cluster has removed this member.
var errRemoved = errors.New("this node has been removed from the cluster - please restart k3s to rejoin the cluster")

// store is this server's etcd.
type store struct {
	o      Options
	l      layout
	name   string
	client *clientv3.Client // of this member, or of others with --disable-etcd
	log    *slog.Logger
}

func (s *store) url(port int) string { return endpoint(netip.MustParseAddr(s.o.NodeIP), port) }

func endpoint(a netip.Addr, port int) string {
	return "https://" + netip.AddrPortFrom(a, uint16(port)).String()
}

// local is the client URL on loopback.
func (s *store) local() string { return endpoint(s.o.Loopback, 2379) }

// urls are loopback and the node's address, once where they are one.
func (s *store) urls(port int) string {
	if s.o.Loopback.String() == s.o.NodeIP {
		return s.url(port)
	}
	return endpoint(s.o.Loopback, port) + "," + s.url(port)
}

// initial is how a member begins; nothing on a datastore that is there.
type initial struct{ advertise, cluster, state string }

// write writes etcd's configuration where K3s has it. What --etcd-arg says wins.
func (s *store) write(i initial) error {
	metrics := strings.ReplaceAll(endpoint(s.o.Loopback, 2381), "https", "http")
	if s.o.ExposeMetrics {
		metrics = strings.ReplaceAll(s.urls(2381), "https", "http")
	}
	trust := func(cert, ca string) map[string]any {
		return map[string]any{
			"cert-file": s.l.tls("etcd", cert+".crt"), "key-file": s.l.tls("etcd", cert+".key"),
			"client-cert-auth": true, "trusted-ca-file": s.l.tls("etcd", ca+".crt"),
		}
	}
	c := map[string]any{
		"name": s.name, "data-dir": s.l.db(),
		"listen-client-urls": s.urls(2379), "listen-peer-urls": s.urls(2380), "listen-metrics-urls": metrics,
		"listen-client-http-urls": endpoint(s.o.Loopback, 2382), "advertise-client-urls": s.url(2379),
		"client-transport-security": trust("server-client", "server-ca"),
		"peer-transport-security":   trust("peer-server-client", "peer-ca"),
		"heartbeat-interval":        500, "election-timeout": 5000, "snapshot-count": 10000,
		"logger": "zap", "log-outputs": []string{"stderr"}, "log-level": "warn",
	}
	for key, v := range map[string]string{
		"initial-advertise-peer-urls": i.advertise, "initial-cluster": i.cluster, "initial-cluster-state": i.state,
	} {
		if v != "" {
			c[key] = v
		}
	}
	for _, a := range s.o.ETCDArgs {
		key, v, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		c[key] = typed(v)
	}
	content, err := json.Marshal(c) // JSON is YAML
	if err != nil {
		return err
	}
	return write(s.l.etcdConfig(), content)
}

func typed(v string) any {
	if n, err := strconv.ParseInt(v, 10, 64); err == nil {
		return n
	}
	if b, err := strconv.ParseBool(v); err == nil {
		return b
	}
	if d, err := time.ParseDuration(v); err == nil {
		return d
	}
	return v
}

// run runs the member until ctx ends. When the cluster has removed it, it leaves
// a tombstone.
func (s *store) run(ctx context.Context) error {
	cfg, err := embed.ConfigFromFile(s.l.etcdConfig())
	if err != nil {
		return fmt.Errorf("etcd: configuration: %w", err)
	}
	why := &reason{}
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(cfg.GetLogger().WithOptions(
		zap.WrapCore(func(c zapcore.Core) zapcore.Core { return zapcore.NewTee(c, why) })))
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer func() {
		select {
		case <-e.Server.ReadyNotify():
		default: // Close would wait for it
			e.Server.HardStop()
		}
		e.Close()
	}()
	select {
	case <-ctx.Done():
		return nil
	case err = <-e.Err():
	case <-e.Server.StopNotify():
		err = errors.New("it stopped")
	}
	if !e.Server.IsIDRemoved(uint64(e.Server.MemberID())) && !why.removed() {
		return fmt.Errorf("etcd: %w", err)
	}
	if err := write(s.l.tombstone(), nil); err != nil {
		return err
	}
	return errRemoved
}

// dial makes a client with this server's certificate.
func (s *store) dial(ctx context.Context, endpoints ...string) (*clientv3.Client, error) {
	cfg, err := s.tls()
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: endpoints, TLS: cfg, Logger: zap.NewNop(),
		DialTimeout: 2 * time.Second, DialKeepAliveTime: 30 * time.Second, DialKeepAliveTimeout: 10 * time.Second,
	})
}

func (s *store) tls() (*tls.Config, error) {
	return transport.TLSInfo{
		CertFile: s.l.tls("etcd", "client.crt"), KeyFile: s.l.tls("etcd", "client.key"), TrustedCAFile: s.l.tls("etcd", "server-ca.crt"),
	}.ClientConfig()
}

// reason listens for why etcd's server stops: it says so in its log only.
type reason struct {
	mu sync.Mutex
	is bool
}

func (r *reason) removed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.is
}

func (r *reason) Enabled(l zapcore.Level) bool      { return l >= zapcore.WarnLevel }
func (r *reason) With([]zapcore.Field) zapcore.Core { return r }
func (r *reason) Sync() error                       { return nil }
func (r *reason) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if r.Enabled(e.Level) {
		return c.AddCore(e, r)
	}
	return c
}

func (r *reason) Write(e zapcore.Entry, fields []zapcore.Field) error {
	for _, f := range fields {
		if err, is := f.Interface.(error); is && e.Message == "server error" && strings.Contains(err.Error(), "permanently removed") {
			r.mu.Lock()
			r.is = true
			r.mu.Unlock()
		}
	}
	return nil
}
