package agent

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"suffrage/fitness"
	"suffrage/probes"
)

const (
	// scrapeLeast is the shortest time between two reads of the page, however
	// short the period: reading it costs etcd more than it costs us.
	scrapeLeast = 500 * time.Millisecond
	// restartSlack is by how much a member's start may seem to move without a
	// restart: the kernel gives the boot time in whole seconds.
	restartSlack = 1500 * time.Millisecond
)

// member watches the etcd member of this host through its metrics page.
type member struct {
	url     string
	client  *http.Client
	record  *record
	window  time.Duration // of fitness.WindowSize samples
	wal     *ring
	commit  *ring
	starts  atomic.Uint64 // restarts seen, which Stability counts
	started int64         // microseconds by the record's clock; 0 is not known
	heard   int64         // when the page was read last
	pages   []page        // of the newest window, oldest first
	first   int64         // when the first page of this process was read
}

type page struct {
	at          int64
	wal, commit probes.Histogram
}

// read reads the page once. Where nothing listens, the host is a standby.
func (m *member) read(ctx context.Context) error {
	got, err := probes.FetchEtcdMetrics(ctx, m.client, m.url)
	now := m.record.now()
	switch {
	case errors.Is(err, probes.ErrNotListening):
		m.absent(now)
		return nil
	case err != nil:
		m.record.tell(func(f *fitness.Facts) {
			if f.Member != nil {
				f.Member.Note = clip(err.Error())
			}
		})
		return err
	}
	m.heard = now
	m.note(got, now, time.Now())
	m.histograms(got, now)
	return nil
}

// absent forgets what was measured. When the member began is kept for a window,
// so that one that comes back is seen as restarted.
func (m *member) absent(now int64) {
	m.pages = nil
	m.record.dropBounds(m.wal, m.commit)
	if now-m.heard > m.window.Microseconds() {
		m.started = 0
	}
	m.record.tell(func(f *fitness.Facts) { f.Member = nil })
}

// note keeps when the member began, by the record's clock. The page gives it by
// the wall clock, so its age is what can be compared: when somebody sets the
// clock, both move.
func (m *member) note(got probes.EtcdMetrics, now int64, wall time.Time) {
	f := fitness.MemberFacts{ElectionTimeout: got.ElectionTimeout}
	if got.Started > 0 {
		age := wall.UnixMicro() - int64(got.Started*1e6)
		if began := now - max(0, age); m.started == 0 {
			m.started = began
		} else if began-m.started > restartSlack.Microseconds() {
			m.started = began
			m.starts.Add(1)
			m.pages = nil
		}
	}
	f.Started = m.started
	switch {
	case f.Started == 0:
		f.Note = "its metrics have no process_start_time_seconds, so restarts are not seen"
	case f.ElectionTimeout == 0:
		f.Note = "its metrics do not tell its election timeout"
	}
	m.record.tell(func(facts *fitness.Facts) { facts.Member = &f })
}

// histograms compares the page with the oldest one of the newest window. Until
// pages reach back that far, the probes decide alone.
func (m *member) histograms(got probes.EtcdMetrics, now int64) {
	p := page{at: now, wal: got.WALFsync, commit: got.BackendCommit}
	if n := len(m.pages); n > 0 {
		_, same := p.wal.Since(m.pages[n-1].wal)
		_, too := p.commit.Since(m.pages[n-1].commit)
		if !same || !too {
			m.pages = m.pages[:0] // another process counts now
		}
	}
	if len(m.pages) == 0 {
		m.first = now
	}
	m.pages = append(m.pages, p)
	window := m.window.Microseconds()
	for now-m.pages[0].at > window {
		m.pages = append(m.pages[:0], m.pages[1:]...)
	}
	old := m.pages[0]
	if now-m.first < window {
		return
	}
	if d, ok := p.wal.Since(old.wal); ok {
		m.record.bound(m.wal, d.Bound(now))
	}
	if d, ok := p.commit.Since(old.commit); ok {
		m.record.bound(m.commit, d.Bound(now))
	}
}

// restarts is a probes.Counter.
func (m *member) restarts() (uint64, error) { return m.starts.Load(), nil }
