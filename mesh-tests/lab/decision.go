package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/demo"
	"suffrage/membership"
)

// answerLimit bounds a question to a service on a host, maxAnswer what it says, in bytes.
const (
	answerLimit = 5 * time.Second
	maxAnswer   = 16 << 20
)

// Decision is what the controller that leads decided last. Unlike a command it
// remembers since when something is so.
func (f *Fleet) Decision(ctx context.Context) (d membership.Decision, err error) {
	var errs []error
	for _, n := range f.Nodes {
		b, err := n.get(ctx, "http://127.0.0.1:7402/decision")
		if err == nil {
			err = json.Unmarshal(b, &d)
		}
		if err == nil {
			return d, nil
		}
		errs = append(errs, err)
	}
	return d, fmt.Errorf("lab: no controller tells a decision: %w", errors.Join(errs...))
}

// get asks a service that listens on the host's own loopback device.
func (n *Node) get(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	dial := func(ctx context.Context, network, address string) (c net.Conn, err error) {
		if e := n.net.In(n.Number, func() error { c, err = (&net.Dialer{}).DialContext(ctx, network, address); return nil }); e != nil {
			return nil, e
		}
		return c, err
	}
	b, err := ask(ctx, &http.Transport{DialContext: dial, DisableKeepAlives: true}, url)
	if err != nil {
		return nil, fmt.Errorf("lab: %s: %s: %w", n.Name, url, err)
	}
	return b, nil
}

// Only is a client that knows of one host's etcd alone.
func (f *Fleet) Only(host string) (*clientv3.Client, error) {
	c := f.etcd
	c.Endpoints = []string{fmt.Sprintf("https://%s:%d", Address(f.Node(host).Number), demo.ClientPort)}
	return c.Client()
}

// Metrics is what the etcd on a host tells Prometheus.
func (f *Fleet) Metrics(ctx context.Context, host string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	url := fmt.Sprintf("https://%s:%d/metrics", Address(f.Node(host).Number), demo.ClientPort)
	plain, err := f.etcd.TLS()
	if err != nil {
		return "", err
	}
	plain.NextProtos = nil // which are gRPC's
	b, err := ask(ctx, &http.Transport{TLSClientConfig: plain, DisableKeepAlives: true}, url)
	if err != nil {
		return "", fmt.Errorf("lab: %s: %w", url, err)
	}
	return string(b), nil
}

func ask(ctx context.Context, through *http.Transport, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{Transport: through}
	answer, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return b, err
}
