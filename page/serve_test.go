package page_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"suffrage/config"
	"suffrage/identity"
	"suffrage/page"
	"suffrage/page/pagetest"
)

func newKey(t *testing.T) *identity.Key {
	t.Helper()
	k, err := identity.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// away is an address of this machine that others may reach.
func away(t *testing.T) netip.Addr {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
			return p.Addr()
		}
	}
	t.Skip("this machine has no address but loopback")
	return netip.Addr{}
}

// Away from loopback only keys of the roster are served; there nothing is in the clear.
func TestOnlyTheRosterAwayFromLoopback(t *testing.T) {
	own, friend, stranger := newKey(t), newKey(t), newKey(t)
	host := func(name string, i int, k *identity.Key) identity.RosterHost {
		return identity.RosterHost{Name: name, Address: netip.MustParseAddr(fmt.Sprintf("100.64.0.%d", i)), Port: 7400, Fingerprint: k.Fingerprint()}
	}
	h1 := host("h1", 1, own)
	roster, err := identity.NewRoster([]identity.RosterHost{h1, host("h2", 2, friend)})
	if err != nil {
		t.Fatal(err)
	}
	listen := func(c page.Config) string {
		l, err := page.Listen(c, own, func() *identity.Roster { return roster })
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		s := &pagetest.Source{}
		quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
		done := make(chan error, 1)
		go func() {
			done <- page.Serve(ctx, l, page.New(page.Options{Source: s, History: &page.History{}, Host: "h1", Log: quiet}), quiet)
		}()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		return l.Addr().String()
	}
	ask := func(url string, c *tls.Config) (int, error) {
		tr := &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}
		resp, err := tr.RoundTrip(must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)))
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, nil
	}
	near := listen(page.Config{Listen: "127.0.0.1:0"})
	if code, err := ask("http://"+near+"/v1/fleet", nil); code != 200 {
		t.Errorf("on loopback: %d, %v", code, err)
	}
	far := listen(page.Config{Listen: netip.AddrPortFrom(away(t), 0).String()})
	if code, err := ask("https://"+far+"/v1/fleet", identity.ClientTLS(friend, h1, "http/1.1")); code != 200 {
		t.Errorf("a host of the roster: %d, %v", code, err)
	}
	for name, c := range map[string]*tls.Config{"a stranger's key": identity.ClientTLS(stranger, h1, "http/1.1"), "no key": {InsecureSkipVerify: true}} {
		if code, err := ask("https://"+far+"/v1/fleet", c); err == nil {
			t.Errorf("%s: %d", name, code)
		}
	}
	if code, err := ask("http://"+far+"/v1/fleet", nil); code == 200 {
		t.Errorf("in the clear: %d, %v", code, err)
	}
	if _, err := page.Listen(page.Config{Listen: near}, own, nil); err == nil || !strings.Contains(err.Error(), "controller.page.listen "+near) {
		t.Errorf("an address that is taken: %v", err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestConfig(t *testing.T) {
	if err := page.DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	for listen, ok := range map[string]bool{"": true, "127.0.0.1:7403": true, "[::1]:7403": true, "100.64.0.1:80": true,
		"0.0.0.0:7403": false, "[::]:7403": false, ":7403": false, "localhost:7403": false, "127.0.0.1": false} {
		err := page.Config{Listen: listen}.Validate()
		if _, is := err.(config.Problem); (err == nil) != ok || err != nil && !is {
			t.Errorf("%q: %v", listen, err)
		}
	}
}
