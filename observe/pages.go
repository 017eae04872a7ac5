package observe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/etcd"
	"suffrage/probes"
)

const (
	maxPage     = 8 << 20 // bytes; etcd's page has about 150 KiB, K3s's some MiB
	pageTimeout = 5 * time.Second
)

// pages is one member's metrics page, read at the start and at the end.
type pages struct {
	url         string
	first, last probes.EtcdMetrics
}

type foundPage struct {
	pages
	tried []etcd.Trouble
}

func walFsync(m probes.EtcdMetrics) probes.Histogram      { return m.WALFsync }
func backendCommit(m probes.EtcdMetrics) probes.Histogram { return m.BackendCommit }

// disk judges what was observed between the two readings.
func (p pages) disk(limit fitness.Figure, of func(probes.EtcdMetrics) probes.Histogram) Disk {
	d := Disk{Hi: fitness.Inf, Limit: limit, Says: NoMetrics}
	if p.url == "" || len(of(p.last).Buckets) == 0 {
		return d
	}
	h, ok := of(p.last).Since(of(p.first))
	if !ok {
		d.Says = TooFew // it restarted: the totals began again
		return d
	}
	d.Lo, d.Hi, d.Count = h.P99()
	switch {
	case d.Count < fitness.WindowSize:
		d.Says = TooFew
	case d.Hi <= limit:
		d.Says = Passes
	case d.Lo >= limit:
		d.Says = Fails
	default:
		d.Says = CannotSay
	}
	return d
}

// serverID is in the page itself: which member it is of, whatever the address.
var serverID = regexp.MustCompile(`(?m)^etcd_server_id\{server_id="([0-9a-f]{1,16})"\} 1$`)

// findPages finds the metrics page of each member that answers.
func (o Options) findPages(ctx context.Context, ob etcd.Observation) map[string]foundPage {
	out := map[string]foundPage{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, m := range ob.Members {
		if ob.Reached[m.ID] == "" {
			continue
		}
		wg.Go(func() {
			f := o.findPage(ctx, m, ob.Reached[m.ID])
			mu.Lock()
			defer mu.Unlock()
			out[m.ID] = f
		})
	}
	wg.Wait()
	return out
}

// loopbackPage is where K3s and kubeadm serve the metrics of their own host.
const loopbackPage = "http://127.0.0.1:2381/metrics"

func (o Options) findPage(ctx context.Context, m membership.Member, reached string) foundPage {
	var f foundPage
	var tried []string
	for _, page := range o.candidates(reached) {
		got, id, err := o.read(ctx, page)
		switch {
		case err == nil && id == m.ID:
			return foundPage{pages: pages{url: page, first: got, last: got}}
		case err == nil && id == "" && page != loopbackPage && len(o.Metrics) == 0:
			// A page that does not name its member, at that member's own address.
			return foundPage{pages: pages{url: page, first: got, last: got}}
		case err != nil:
			tried = append(tried, fmt.Sprintf("%s: %s", page, explainPage(err)))
		case page != loopbackPage && len(o.Metrics) == 0:
			tried = append(tried, fmt.Sprintf("%s: it is of another member (%s)", page, id))
		}
	}
	what := "no metrics page, so no disk figures"
	for _, t := range tried {
		what += "; " + t
	}
	f.tried = []etcd.Trouble{{Subject: m.Label(), What: what,
		Next: "expose it (K3s: --etcd-expose-metrics on every server; etcd, kubeadm: --listen-metrics-urls=http://ADDRESS:2381), run this on that host, or name the page with --metrics"}}
	return f
}

func (o Options) candidates(reached string) []string {
	if len(o.Metrics) > 0 {
		return o.Metrics
	}
	u, err := url.Parse(reached)
	if err != nil {
		return nil
	}
	out := []string{reached + "/metrics", "http://" + net.JoinHostPort(u.Hostname(), "2381") + "/metrics"}
	if !slices.Contains(out, loopbackPage) {
		out = append(out, loopbackPage)
	}
	return out
}

// readAgain reads the page at the end of the run.
func (o Options) readAgain(ctx context.Context, p *pages) []etcd.Trouble {
	got, _, err := o.read(ctx, p.url)
	if err != nil {
		return []etcd.Trouble{{Subject: p.url, What: "it could not be read again at the end: " + explainPage(err), Next: "run it again"}}
	}
	p.last = got
	if _, ok := got.WALFsync.Since(p.first.WALFsync); !ok {
		return []etcd.Trouble{{Subject: p.url, What: "its counters began again: the member restarted during the run", Next: "find out why, then run it again"}}
	}
	return nil
}

var errStatus = errors.New("it answers")

// read fetches a page once. No redirect is followed: it would lead away from
// the member.
func (o Options) read(ctx context.Context, page string) (m probes.EtcdMetrics, id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	t, err := o.Etcd.TLS()
	if err != nil {
		return m, "", err
	}
	t.NextProtos = []string{"http/1.1"}
	client := http.Client{
		Transport:     &http.Transport{TLSClientConfig: t, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return m, "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return m, "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return m, "", fmt.Errorf("%w %s", errStatus, resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage+1))
	if err != nil {
		return m, "", err
	}
	if len(body) > maxPage {
		return m, "", fmt.Errorf("the page is larger than %d MiB", maxPage>>20)
	}
	if m, err = probes.ParseEtcdMetrics(bytes.NewReader(body)); err != nil {
		return m, "", err
	}
	if s := serverID.FindSubmatch(body); s != nil {
		id = string(s[1])
	}
	return m, id, nil
}

func explainPage(err error) string {
	if errors.Is(err, errStatus) || errors.Is(err, probes.ErrNotEtcd) {
		return err.Error()
	}
	// etcd with a client port that speaks gRPC alone hangs up on HTTP.
	if errors.Is(err, io.EOF) {
		return "the connection was closed: no pages are served there"
	}
	if u := (*url.Error)(nil); errors.As(err, &u) {
		what, _ := etcd.Explain(u.Err, u.URL)
		return what
	}
	what, _ := etcd.Explain(err, "")
	return what
}
