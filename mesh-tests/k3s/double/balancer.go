package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// keyAPI lists the servers with an API server, as K3s has it.
const keyAPI = "k3s/apiaddresses"

// balancer carries requests to an API server of the cluster that is ready: this
// server's own first, then that of the joined server, then any other. It keeps
// to one until that fails.
type balancer struct {
	candidates func(context.Context) []string // host:port
	token      string
	inner      *http.Transport

	mu   sync.Mutex
	last string
}

func newBalancer(s *server) (*balancer, error) {
	var own string
	if !s.o.DisableAPIServer {
		own = netip.AddrPortFrom(s.o.Loopback, supervisorPort).String()
	}
	b, err := balancerOf(s.l.tls("server-ca.crt"), s.password)
	if err != nil {
		return nil, err
	}
	b.candidates = func(ctx context.Context) (out []string) {
		out = append(out, own, hostPort(s.o.Server))
		if s.client != nil {
			known, _ := apiAddresses(ctx, s.client)
			out = append(out, known...)
		}
		return slices.DeleteFunc(out, func(a string) bool { return a == "" })
	}
	return b, nil
}

func balancerOf(ca, password string) (*balancer, error) {
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return &balancer{token: adminToken(password), inner: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true, ResponseHeaderTimeout: time.Minute,
	}}, nil
}

func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	to, err := b.choose(r.Context())
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL.Host, r.Host = to, ""
	r.Header.Set("Authorization", "Bearer "+b.token)
	resp, err := b.inner.RoundTrip(r)
	if err != nil || resp.StatusCode == http.StatusServiceUnavailable {
		b.drop(to)
	}
	return resp, err
}

func (b *balancer) drop(server string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last == server {
		b.last = ""
	}
}

func (b *balancer) choose(ctx context.Context) (string, error) {
	b.mu.Lock()
	last := b.last
	b.mu.Unlock()
	if last != "" {
		return last, nil
	}
	for _, c := range b.candidates(ctx) {
		if b.ready(ctx, c) {
			b.mu.Lock()
			b.last = c
			b.mu.Unlock()
			return c, nil
		}
	}
	return "", errors.New("no API server is ready")
}

func (b *balancer) ready(ctx context.Context, server string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+server+"/readyz", nil)
	if err != nil {
		return false
	}
	req.Header.Set("Authorization", "Bearer "+b.token)
	resp, err := b.inner.RoundTrip(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, answerLimit))
	return err == nil && resp.StatusCode == http.StatusOK
}

func apiAddresses(ctx context.Context, client *clientv3.Client) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	got, err := client.Get(ctx, keyAPI, clientv3.WithSerializable())
	if err != nil || len(got.Kvs) == 0 {
		return nil, err
	}
	var list []string
	return list, json.Unmarshal(got.Kvs[0].Value, &list)
}

// announce writes this server to the list.
func (s *server) announce(ctx context.Context) error {
	own := netip.AddrPortFrom(netip.MustParseAddr(s.o.NodeIP), supervisorPort).String()
	for {
		got, err := s.client.Get(ctx, keyAPI)
		if err != nil {
			return err
		}
		var list []string
		var rev int64
		if len(got.Kvs) > 0 {
			rev = got.Kvs[0].ModRevision
			if err := json.Unmarshal(got.Kvs[0].Value, &list); err != nil {
				return fmt.Errorf("%s: %w", keyAPI, err)
			}
		}
		if slices.Contains(list, own) {
			return nil
		}
		text, err := json.Marshal(append(list, own))
		if err != nil {
			return err
		}
		done, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(keyAPI), "=", rev)).Then(clientv3.OpPut(keyAPI, string(text))).Commit()
		if err != nil || done.Succeeded {
			return err
		}
	}
}
