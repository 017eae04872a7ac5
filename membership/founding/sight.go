package founding

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/membership/etcd"
	"suffrage/membership/host"
)

// Sight is what was seen of every host of the roster.
type Sight struct {
	// Here is this host's name, Local what it has.
	Here  string
	Local host.Standing
	// Others are the other hosts, in the roster's order.
	Others []Seen
}

// Seen is what was found out about another host.
type Seen struct {
	Host string
	// Standing is nil where its agent did not answer; Silence says why.
	Standing *host.Standing
	Silence  string
	// Etcd says what answers at its etcd ports, empty where nothing does.
	Etcd string
	// Starting is what its etcd, if any, knows of the member at this host's peer
	// URL.
	Starting Started
}

// Started is what a cluster knows of one of its members.
type Started int

const (
	NotKnown Started = iota
	NeverStarted
	HasStarted
)

// Place is where another host is looked for.
type Place struct {
	Host         string
	Peer, Client string // URLs of its etcd
}

// Look asks all other hosts at once.
type Look struct {
	// Standing asks a host's agent.
	Standing func(ctx context.Context, name string) (host.Standing, error)
	// Etcd has the certificates, and the timeout of each question.
	Etcd etcd.Config
	// Self is this host's peer URL.
	Self string
}

// Ask asks each place. It takes no longer than two timeouts.
func (l Look) Ask(ctx context.Context, places []Place) []Seen {
	out := make([]Seen, len(places))
	var asking sync.WaitGroup
	for i, p := range places {
		asking.Go(func() { out[i] = l.ask(ctx, p) })
	}
	asking.Wait()
	return out
}

func (l Look) ask(ctx context.Context, p Place) Seen {
	s := Seen{Host: p.Host}
	var asking sync.WaitGroup
	asking.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, l.Etcd.Timeout.Std())
		defer cancel()
		switch st, err := l.Standing(ctx, p.Host); {
		case err != nil:
			s.Silence = err.Error()
		default:
			s.Standing = &st
		}
	})
	var peer, client string
	asking.Go(func() { peer = l.answers(ctx, p.Peer) })
	asking.Go(func() { client = l.answers(ctx, p.Client) })
	asking.Wait()
	switch {
	case peer != "":
		s.Etcd = p.Peer + " " + peer
	case client != "":
		s.Etcd = p.Client + " " + client
	}
	if s.Etcd != "" {
		s.Starting = l.started(ctx, p.Client)
	}
	return s
}

// answers says what is at an address, empty where nothing is. A connection that
// is accepted and closed at once is nothing: some relay or load balancer stands
// there, and no server behind it. One that is accepted and stays silent is a
// frozen process.
func (l Look) answers(ctx context.Context, at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, l.Etcd.Timeout.Std())
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return ""
	}
	defer raw.Close()
	if u.Scheme != "https" {
		return "accepts connections"
	}
	cfg, err := l.Etcd.TLS()
	if err != nil || cfg == nil {
		return "accepts connections"
	}
	cfg.ServerName = u.Hostname()
	switch err := tls.Client(raw, cfg).HandshakeContext(ctx); {
	case err == nil:
		return "answers"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return "accepts connections and does not answer"
	default:
		return fmt.Sprintf("answers (%v)", err)
	}
}

// started asks the etcd at a client URL, which need not have a quorum, whether
// the member at this host's peer URL was ever started: it publishes its client
// URLs then.
func (l Look) started(ctx context.Context, at string) Started {
	cfg := l.Etcd
	cfg.Endpoints = []string{at}
	client, err := cfg.Client()
	if err != nil {
		return NotKnown
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, l.Etcd.Timeout.Std())
	defer cancel()
	list, err := client.MemberList(ctx, clientv3.WithSerializable())
	if err != nil {
		return NotKnown
	}
	for _, m := range list.Members {
		if strings.Join(m.PeerURLs, ",") == l.Self {
			if len(m.ClientURLs) > 0 {
				return HasStarted
			}
			return NeverStarted
		}
	}
	return NotKnown
}

// patience is how long a founding waits for another command on this host.
const patience = 30 * time.Second
