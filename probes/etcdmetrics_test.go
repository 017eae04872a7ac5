package probes_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/probes"
)

func captured(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParseCapturedPages(t *testing.T) {
	a, err := probes.ParseEtcdMetrics(bytes.NewReader(captured(t, "etcd-3.7.3-a.metrics")))
	if err != nil {
		t.Fatal(err)
	}
	b, err := probes.ParseEtcdMetrics(bytes.NewReader(captured(t, "etcd-3.7.3-b.metrics")))
	if err != nil {
		t.Fatal(err)
	}
	if b.Version != "3.7.3" || b.Started != 1.79600477532e+09 || b.ElectionTimeout != 0 || b.WALFsync.Count != 357 {
		t.Errorf("%+v", b)
	}
	d, ok := b.WALFsync.Since(a.WALFsync)
	if lo, hi, n := d.P99(); !ok || lo != 0 || hi != .001 || n != 300 {
		t.Errorf("%v..%v of %d, want up to 1 ms of the 300 writes in between", lo, hi, n)
	}
	if _, ok := a.WALFsync.Since(b.WALFsync); ok {
		t.Error("the older page since the newer one is a restart")
	}
	if _, ok := b.BackendCommit.Since(a.BackendCommit); !ok {
		t.Error("no difference of backend commits")
	}
}

func TestParseElectionTimeout(t *testing.T) {
	page := string(captured(t, "etcd-3.7.3-a.metrics")) + "# TYPE suffrage_member_election_timeout_seconds gauge\nsuffrage_member_election_timeout_seconds 2.5\n"
	if m, err := probes.ParseEtcdMetrics(strings.NewReader(page)); err != nil || m.ElectionTimeout != fitness.Duration(2500*time.Millisecond) {
		t.Errorf("%v, %v, want 2.5s", m.ElectionTimeout, err)
	}
}

const tiny = `# TYPE etcd_disk_backend_commit_duration_seconds histogram
etcd_disk_backend_commit_duration_seconds_bucket{le="+Inf"} 0
etcd_disk_backend_commit_duration_seconds_sum 0
etcd_disk_backend_commit_duration_seconds_count 0
# TYPE etcd_disk_wal_fsync_duration_seconds histogram
`

func TestPagesThatAreNotEtcds(t *testing.T) {
	const wal = "etcd_disk_wal_fsync_duration_seconds"
	for _, tt := range []struct{ why, page, want string }{
		{"empty", "", "no histogram"},
		{"HTML", "<html><body>404 page not found</body></html>", "no histogram"},
		{"another program's", "# TYPE go_goroutines gauge\ngo_goroutines 7\nprocess_start_time_seconds 1\n", "no histogram"},
		{"the name of another kind", "# TYPE " + wal + " gauge\n" + wal + " 7\n", "no histogram"},
		{"cut off in a bucket", tiny + wal + `_bucket{le="0.0`, "not an etcd member's metrics"},
		{"no buckets", tiny + wal + "_sum 1\n" + wal + "_count 1\n", "no buckets"},
		{"buckets that shrink", tiny + wal + `_bucket{le="1"} 5` + "\n" + wal + `_bucket{le="+Inf"} 4` + "\n" + wal + "_count 4\n", "fewer"},
		{"an edge that is not a number", tiny + wal + `_bucket{le="NaN"} 5` + "\n" + wal + "_count 5\n", "no buckets"},
		{"a negative count", tiny + wal + `_bucket{le="+Inf"} -1` + "\n" + wal + "_count -1\n", "negative"},
		{"no last bucket", tiny + wal + `_bucket{le="1"} 5` + "\n" + wal + "_count 5\n", "last bucket"},
		{"two members on one page", tiny + wal + `_bucket{m="a",le="+Inf"} 5` + "\n" + wal + `_bucket{m="b",le="+Inf"} 5` + "\n", "several members"},
		{"a line without end", strings.Repeat("x", 70<<10), "line longer"},
		{"a page without end", strings.Repeat("# hello world\n", 700_000), "larger than"},
		{"the same line without end", strings.Repeat(wal+"_count 5\n", 5000), "more than 4096 lines"},
	} {
		m, err := probes.ParseEtcdMetrics(strings.NewReader(tt.page))
		if err == nil || !errors.Is(err, probes.ErrNotEtcd) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %+v, %v, want ErrNotEtcd with %q", tt.why, m, err, tt.want)
		}
	}
}

func TestFetchEtcdMetrics(t *testing.T) {
	page := captured(t, "etcd-3.7.3-b.metrics")
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, r *http.Request) { w.Write(page) })
	mux.HandleFunc("/other", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") })
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	srv := httptest.NewServer(mux)
	defer srv.Close()
	client := srv.Client()

	if m, err := probes.FetchEtcdMetrics(t.Context(), client, srv.URL+"/metrics"); err != nil || m.Version != "3.7.3" {
		t.Errorf("%+v, %v", m, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String() + "/metrics"
	l.Close()
	for _, tt := range []struct {
		why, url string
		is       error
	}{
		{"another page", srv.URL + "/other", probes.ErrNotEtcd},
		{"no page", srv.URL + "/none", probes.ErrNotEtcd},
		{"nothing listens", closed, probes.ErrNotListening},
		{"no answer in time", srv.URL + "/slow", context.DeadlineExceeded},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if tt.is != context.DeadlineExceeded {
			ctx = t.Context()
		}
		_, err := probes.FetchEtcdMetrics(ctx, client, tt.url)
		cancel()
		if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.url) {
			t.Errorf("%s: %v, want %v with the URL", tt.why, err, tt.is)
		}
	}
}

func FuzzParseEtcdMetrics(f *testing.F) {
	f.Add(captured(f, "etcd-3.7.3-a.metrics"))
	f.Add([]byte(tiny + `etcd_disk_wal_fsync_duration_seconds_bucket{le="+Inf"} 18446744073709551615` + "\n"))
	f.Add([]byte("<html>"))
	f.Fuzz(func(t *testing.T, page []byte) {
		m, err := probes.ParseEtcdMetrics(bytes.NewReader(page))
		if err != nil {
			return
		}
		for _, h := range []probes.Histogram{m.WALFsync, m.BackendCommit} {
			if lo, hi, _ := h.P99(); !(lo < hi) {
				t.Errorf("p99 in %v..%v", lo, hi)
			}
			if d, ok := h.Since(h); !ok || d.Count != 0 {
				t.Errorf("%+v since itself: %v", h, ok)
			}
		}
	})
}

func BenchmarkParseEtcdMetrics(b *testing.B) {
	page := captured(b, "etcd-3.7.3-b.metrics")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := probes.ParseEtcdMetrics(bytes.NewReader(page)); err != nil {
			b.Fatal(err)
		}
	}
}
