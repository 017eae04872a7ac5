package main

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"sync/atomic"
	"time"
)

const (
	supervisorPort = 6443
	apiPort        = 6444 // of kube-apiserver, on loopback
)

// supervisor answers on 6443: joining servers, and everybody else who wants the
// API, for which it stands before this server's kube-apiserver.
type supervisor struct {
	store    *store
	password string
	serving  atomic.Bool // kube-apiserver is ready
	kube     *balancer
	proxy    *httputil.ReverseProxy
}

func newSupervisor(s *store, password string) (*supervisor, error) {
	ca, err := os.ReadFile(s.l.tls("server-ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	to := &url.URL{Scheme: "https", Host: netip.AddrPortFrom(s.o.Loopback, apiPort).String()}
	return &supervisor{store: s, password: password, proxy: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true},
		FlushInterval: -1, // a watch has no end
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "apiserver not ready: "+err.Error(), http.StatusServiceUnavailable)
		},
	}}, nil
}

// run serves on the node's address and on loopback until ctx ends.
func (s *supervisor) run(ctx context.Context) error {
	cert, err := tls.LoadX509KeyPair(s.store.l.tls("serving-kube-apiserver.crt"), s.store.l.tls("serving-kube-apiserver.key"))
	if err != nil {
		return err
	}
	srv := &http.Server{
		Handler: s, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}},
		ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo),
	}
	defer srv.Close()
	addresses := []string{s.store.o.NodeIP}
	if l := s.store.o.Loopback.String(); l != addresses[0] {
		addresses = append(addresses, l)
	}
	errs := make(chan error, len(addresses))
	for _, a := range addresses {
		l, err := net.Listen("tcp", netip.AddrPortFrom(netip.MustParseAddr(a), supervisorPort).String())
		if err != nil {
			return err
		}
		go func() { errs <- srv.ServeTLS(l, "", "") }()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-errs:
		return err
	}
}

func (s *supervisor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case pathCA:
		s.file(w)
	case pathBootstrap:
		s.to(w, r, func() ([]byte, error) { return bootstrapFiles(s.store.l) })
	case pathMembers:
		s.to(w, r, func() ([]byte, error) { return s.members(r.Context()) })
	default:
		switch {
		case s.store.o.DisableAPIServer:
			http.Error(w, "apiserver disabled", http.StatusServiceUnavailable)
		case !s.serving.Load():
			http.Error(w, "apiserver not ready", http.StatusServiceUnavailable)
		case r.URL.Path == pathKubelet:
			s.kubelet(w, r)
		default:
			s.proxy.ServeHTTP(w, r)
		}
	}
}

func (s *supervisor) file(w http.ResponseWriter) {
	ca, err := os.ReadFile(s.store.l.tls("server-ca.crt"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(ca)
}

// to answers those who know the password.
func (s *supervisor) to(w http.ResponseWriter, r *http.Request, answer func() ([]byte, error)) {
	_, given, _ := r.BasicAuth()
	if subtle.ConstantTimeCompare([]byte(given), []byte(s.password)) != 1 {
		http.Error(w, "not authorized", http.StatusUnauthorized)
		return
	}
	body, err := answer()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

func (s *supervisor) members(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	list, err := s.store.client.MemberList(ctx)
	if err != nil {
		return nil, err
	}
	out := struct {
		Members []member `json:"members"`
	}{}
	for _, m := range list.Members {
		out.Members = append(out.Members, member{m.ID, m.Name, m.PeerURLs, m.ClientURLs, m.IsLearner})
	}
	return json.Marshal(out)
}
