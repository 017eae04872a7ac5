package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
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
func (f *Fleet) Decision(ctx context.Context) (membership.Decision, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		membership.Decision
		error
	}
	// All are asked at once: one that is frozen answers nobody, and would keep
	// the others' from being heard.
	answers := make(chan answer, len(f.Nodes))
	for _, n := range f.Nodes {
		go func() {
			var a answer
			b, err := n.get(ctx, fmt.Sprintf("http://127.0.0.1:%d/decision", demo.ControllerMetricsPort))
			if err == nil {
				err = json.Unmarshal(b, &a.Decision)
			}
			a.error = err
			answers <- a
		}()
	}
	var errs []error
	for range f.Nodes {
		a := <-answers
		if a.error == nil {
			return a.Decision, nil
		}
		errs = append(errs, a.error)
	}
	return membership.Decision{}, fmt.Errorf("lab: no controller tells a decision: %w", errors.Join(errs...))
}

// Page is what a service on a host tells Prometheus.
type Page struct{ Host, Service, Text string }

// Services are the pages of the agents and controllers that answer.
func (f *Fleet) Services(ctx context.Context) []Page {
	var pages []Page
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, n := range f.Nodes {
		for service, port := range map[string]int{"agent": demo.AgentMetricsPort, "controller": demo.ControllerMetricsPort} {
			all.Go(func() {
				b, err := n.get(ctx, fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
				if err != nil {
					return // it is down, frozen, or not on this host
				}
				mu.Lock()
				defer mu.Unlock()
				pages = append(pages, Page{n.Name, service, string(b)})
			})
		}
	}
	all.Wait()
	slices.SortFunc(pages, func(a, b Page) int { return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Service, b.Service)) })
	return pages
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
