package probes

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"suffrage/fitness"
)

const (
	// maxPage bounds a metrics page. etcd's has about 150 KiB, K3s's some MiB.
	maxPage = 8 << 20
	// maxLine bounds one line of it.
	maxLine = 64 << 10
)

// EtcdMetrics is what Suffrage reads from a member's metrics page.
type EtcdMetrics struct {
	// WALFsync and BackendCommit are cumulative since the process started.
	WALFsync, BackendCommit Histogram
	// Started is when the member's process began, in seconds since 1970 by its
	// host's clock; 0 when the page does not tell.
	Started float64
	// ElectionTimeout is told by a member that Suffrage runs; 0 elsewhere.
	ElectionTimeout fitness.Duration
	// Version is etcd's, such as "3.7.3"; empty when the page does not tell.
	Version string
}

// ErrNotEtcd says that a metrics page is not that of an etcd member.
var ErrNotEtcd = errors.New("not an etcd member's metrics")

const (
	walFsyncMetric  = "etcd_disk_wal_fsync_duration_seconds"
	commitMetric    = "etcd_disk_backend_commit_duration_seconds"
	startedMetric   = "process_start_time_seconds"
	electionMetric  = "suffrage_member_election_timeout_seconds"
	versionMetric   = "etcd_server_version"
	wantedAtTheMost = 4096 // lines
)

// ParseEtcdMetrics reads a metrics page in the text format. Only the lines of
// the few metrics that are wanted are looked at, which is what makes reading a
// page of some megabytes cheap.
func ParseEtcdMetrics(r io.Reader) (EtcdMetrics, error) {
	text, err := wanted(r)
	if err != nil {
		return EtcdMetrics{}, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return EtcdMetrics{}, fmt.Errorf("%w: %w", ErrNotEtcd, err)
	}
	var m EtcdMetrics
	if m.WALFsync, err = histogram(families[walFsyncMetric], walFsyncMetric); err != nil {
		return EtcdMetrics{}, err
	}
	if m.BackendCommit, err = histogram(families[commitMetric], commitMetric); err != nil {
		return EtcdMetrics{}, err
	}
	m.Started = gauge(families[startedMetric], 1<<40)
	m.ElectionTimeout = fitness.Duration(gauge(families[electionMetric], 3600) * float64(time.Second))
	if f := families[versionMetric]; f != nil && len(f.Metric) > 0 {
		for _, l := range f.Metric[0].GetLabel() {
			if l.GetName() == "server_version" && len(l.GetValue()) <= 64 {
				m.Version = l.GetValue()
			}
		}
	}
	return m, nil
}

// wanted keeps the lines of the wanted metrics, with their types.
func wanted(r io.Reader) ([]byte, error) {
	limited := &io.LimitedReader{R: r, N: maxPage + 1}
	sc := bufio.NewScanner(limited)
	sc.Buffer(nil, maxLine)
	var out []byte
	lines := 0
	for sc.Scan() {
		line := sc.Bytes()
		name, ok := bytes.CutPrefix(line, []byte("# TYPE "))
		if !ok {
			name = line
		}
		if !isWanted(name) {
			continue
		}
		if lines++; lines > wantedAtTheMost {
			return nil, fmt.Errorf("%w: more than %d lines of the same few metrics", ErrNotEtcd, wantedAtTheMost)
		}
		out = append(append(out, line...), '\n')
	}
	switch err := sc.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%w: a line longer than %d bytes", ErrNotEtcd, maxLine)
	case err != nil:
		return nil, err
	case limited.N <= 0:
		return nil, fmt.Errorf("%w: the page is larger than %d bytes", ErrNotEtcd, maxPage)
	}
	return out, nil
}

func isWanted(line []byte) bool {
	for _, m := range [...]string{walFsyncMetric, commitMetric, startedMetric, electionMetric, versionMetric} {
		if len(line) >= len(m) && string(line[:len(m)]) == m {
			return true
		}
	}
	return false
}

func histogram(f *dto.MetricFamily, name string) (Histogram, error) {
	if f == nil || len(f.Metric) == 0 || f.Metric[0].GetHistogram() == nil {
		return Histogram{}, fmt.Errorf("%w: no histogram %s", ErrNotEtcd, name)
	}
	if len(f.Metric) != 1 {
		return Histogram{}, fmt.Errorf("%w: %s stands there %d times: it looks like a page of several members", ErrNotEtcd, name, len(f.Metric))
	}
	from := f.Metric[0].GetHistogram()
	h := Histogram{Count: from.GetSampleCount(), Buckets: make([]Bucket, 0, len(from.GetBucket()))}
	for _, b := range from.GetBucket() {
		h.Buckets = append(h.Buckets, Bucket{Le: b.GetUpperBound(), Count: b.GetCumulativeCount()})
	}
	if err := h.check(); err != nil {
		return Histogram{}, fmt.Errorf("%w: %s: %w", ErrNotEtcd, name, err)
	}
	return h, nil
}

// gauge gives 0 for what is missing or cannot be.
func gauge(f *dto.MetricFamily, most float64) float64 {
	if f == nil || len(f.Metric) == 0 {
		return 0
	}
	v := f.Metric[0].GetGauge().GetValue()
	if f.Metric[0].GetGauge() == nil {
		v = f.Metric[0].GetUntyped().GetValue()
	}
	if math.IsNaN(v) || v < 0 || v > most {
		return 0
	}
	return v
}

// ErrNotListening says that nothing listens where a metrics page was looked
// for: a host without a member, or a member that is down.
var ErrNotListening = errors.New("nothing listens there")

// FetchEtcdMetrics reads the page at a URL. The context bounds the time, the
// client decides about TLS; every error names the URL.
func FetchEtcdMetrics(ctx context.Context, client *http.Client, page string) (EtcdMetrics, error) {
	m, err := fetchEtcdMetrics(ctx, client, page)
	if err != nil {
		return EtcdMetrics{}, fmt.Errorf("probes: read etcd metrics %s: %w", page, err)
	}
	return m, nil
}

func fetchEtcdMetrics(ctx context.Context, client *http.Client, page string) (EtcdMetrics, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return EtcdMetrics{}, err
	}
	req.Header.Set("Accept", "text/plain")
	resp, err := client.Do(req)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return EtcdMetrics{}, fmt.Errorf("%w: is a member running, with its metrics on this address (etcd: --listen-metrics-urls, K3s: etcd-expose-metrics: true)?", ErrNotListening)
	case err != nil:
		return EtcdMetrics{}, innermost(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return EtcdMetrics{}, fmt.Errorf("%w: it answers %s: is this the metrics address of the member?", ErrNotEtcd, resp.Status)
	}
	m, err := ParseEtcdMetrics(resp.Body)
	if errors.Is(err, ErrNotEtcd) {
		return EtcdMetrics{}, fmt.Errorf("%w: is this the metrics address of the member?", err)
	}
	return m, err
}

// innermost leaves out net/http's repetition of method and URL.
func innermost(err error) error {
	u, ok := errors.AsType[*url.Error](err)
	switch {
	case !ok:
		return err
	case u.Timeout():
		return fmt.Errorf("no answer in time: %w", u.Err)
	}
	return u.Err
}
