package page

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"

	"suffrage/identity"
)

const maxConns = 32

// Listen opens the page's address. Where others than this machine reach it, whoever
// connects has to show a key of the roster, as this host does.
func Listen(c Config, key *identity.Key, roster func() *identity.Roster) (net.Listener, error) {
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("page: controller.page.listen %s: %w; is another controller running here? Another address, or none for no page, goes there", c.Listen, err)
	}
	l = netutil.LimitListener(l, maxConns)
	if c.loopback() {
		return l, nil
	}
	return tls.NewListener(l, identity.ServerTLS(key, roster, "http/1.1")), nil
}

// Serve answers until the context ends.
func Serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("page: serve %s: %w", l.Addr(), err)
	}
	return nil
}
