package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"

	"suffrage/identity"
	"suffrage/probes"
)

const (
	// maxConns bounds the connections to the API's port: two per host of the
	// largest fleet that pings each other, and controllers.
	maxConns = 256
	// maxHeader bounds a request's headers, in bytes.
	maxHeader = 16 << 10
)

// serveAPI serves the API and answers pings until the context ends.
func (a *Agent) serveAPI(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/report", a.serveReport)
	mux.HandleFunc("GET /v1/order", a.serveLast)
	mux.HandleFunc("POST /v1/order", a.serveOrder)
	mux.HandleFunc("GET /v1/standing", a.serveStanding)
	srv := &http.Server{
		Handler:           mux,
		TLSConfig:         identity.ServerTLS(a.o.Key, a.roster.Load, "h2", probes.PingProtocol),
		Protocols:         new(http.Protocols),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 16},
		ReadHeaderTimeout: 10 * time.Second, // of the TLS handshake too
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(newQuiet(a.log.Handler()), slog.LevelWarn),
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){
			probes.PingProtocol: func(_ *http.Server, conn *tls.Conn, _ http.Handler) {
				// How it ended is of interest to who asked, and told there.
				if err := probes.ServePings(conn); err != nil {
					a.log.Debug("pings of a peer ended", "err", err)
				}
			},
		},
	}
	srv.Protocols.SetHTTP2(true)
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	err := srv.ServeTLS(netutil.LimitListener(a.api, maxConns), "", "")
	if errors.Is(err, http.ErrServerClosed) && ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("agent: serve %s: %w", a.api.Addr(), err)
}

// serveReport answers GET /v1/report?after=N. The connection may be older than
// the roster, so who asks is looked up again.
func (a *Agent) serveReport(w http.ResponseWriter, req *http.Request) {
	if _, err := identity.PeerName(*req.TLS, a.roster.Load()); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	var after uint64
	if s := req.URL.Query().Get("after"); s != "" {
		var err error
		if after, err = strconv.ParseUint(s, 10, 64); err != nil {
			http.Error(w, "after: want a sequence number", http.StatusBadRequest)
			return
		}
	}
	a.write(w, a.Report(after))
}

// servePages serves metrics and health, without TLS.
func (a *Agent) servePages(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.o.Registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, a.live()) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, a.ready()) })
	srv := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(newQuiet(a.log.Handler()), slog.LevelWarn),
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	err := srv.Serve(netutil.LimitListener(a.pages, 32))
	if errors.Is(err, http.ErrServerClosed) && ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("agent: serve %s: %w", a.pages.Addr(), err)
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// live: the schedule runs. Restarting an agent whose schedule stands still helps.
func (a *Agent) live() error {
	quiet := a.schedule.overdue()
	if quiet > 3*a.o.Config.Period.Std()+10*time.Second {
		return fmt.Errorf("no tick for %v", quiet.Round(time.Second))
	}
	return nil
}

// ready: every probe has run once, well or not.
func (a *Agent) ready() error {
	if names := a.record.waiting(); len(names) > 0 {
		return fmt.Errorf("have not run yet: %s", strings.Join(names, ", "))
	}
	return nil
}

// remoteOf takes the port away, which is new with each attempt.
func remoteOf(text string) string {
	from, rest, ok := strings.Cut(text, " from ")
	addr, rest, ok2 := strings.Cut(rest, ": ")
	if host, _, err := net.SplitHostPort(addr); ok && ok2 && err == nil {
		return from + " from " + host + ": " + rest
	}
	return text
}
