package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"suffrage/identity"
	"suffrage/membership"
	"suffrage/membership/control"
	"suffrage/membership/etcd"
	"suffrage/membership/kube"
	"suffrage/page"
)

func newControllerCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "controller",
		Short: "Gather, decide and report; one of all controllers leads",
		Long: `Runs on voter hosts. One controller leads, by an election in etcd; the others
wait. Each round the leader pulls every agent, looks at etcd, decides and
reports: a log line per change of decision, metrics, and the inputs of every
changed decision in a bounded directory. Mode dry-run: it changes nothing.

On controller.metrics it serves /metrics, /livez, /readyz and /decision, on
controller.page.listen a page for the browser, whether it leads or stands by.
It ends with exit code 1 when it loses leadership: let systemd start it again. Where
a Kubernetes API server is asked and has not answered for a minute, a leader ends so
too if another controller waits; and one that it does not answer waits outside the
election while another leads.`,
		Example: "  suffrage controller --config /etc/suffrage/suffrage.yaml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f, err := openFleet(c)
			if err != nil {
				return err
			}
			defer f.close()
			return f.runController(c)
		},
	}
}

func (f *fleet) runController(c *cobra.Command) error {
	log := newLog(c).With("host", f.Host)
	loop := &control.Loop{
		Round:    f.Controller.Round.Std(),
		Recorder: &control.Recorder{Dir: f.records(), MaxFiles: 200, MaxBytes: 256 << 20},
		Timeline: &control.Timeline{Dir: f.records(), MaxBytes: 256 << 20},
		Log:      log,
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	control.NewMetrics(reg, loop)

	listener, err := net.Listen("tcp", f.Controller.Metrics)
	if err != nil {
		return fmt.Errorf("controller.metrics %s: %w; is another controller running here?", f.Controller.Metrics, err)
	}
	log.Info("controller started", "mode", f.Controller.Mode, "metrics", listener.Addr().String())
	group, ctx := errgroup.WithContext(c.Context())
	history := &page.History{}
	source := &pageSource{fleet: f, loop: loop, history: history}
	if f.Controller.Page.Listen != "" {
		there, err := page.Listen(f.Controller.Page, f.key, func() *identity.Roster { return f.roster })
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		o := page.Options{Source: source, History: history, Host: f.Host, Log: log}
		if f.Controller.Page.Writes {
			o.Owner = pageOwner{f, source}
		}
		group.Go(func() error { return page.Serve(ctx, there, page.New(o), log) })
	}
	group.Go(func() error { return serve(ctx, listener, controllerPages(loop, reg, f.Controller.Round.Std())) })
	who := etcd.Candidate{Host: f.Host, Instance: rand.Text()}
	if f.Flavour != k3s { // K3s acts on removals itself
		group.Go(func() error { return f.remover(who, log).Run(ctx) })
	}
	loop.Acting = f.acting(log)
	standing := f.candidacy(log)
	group.Go(func() error {
		if err := standing.wait(ctx); err != nil {
			return err
		}
		return etcd.Lead(ctx, f.client, who, f.Controller.SessionTTL.Std(), func(ctx context.Context, l etcd.Leadership) error {
			log.Info("leading", "instance", l.Instance)
			loop.Gatherer = f.gatherer(&l)
			source.leads.Store(&l)
			defer source.leads.Store(nil)
			return f.lead(ctx, loop, history, log)
		})
	})
	if err := group.Wait(); c.Context().Err() == nil {
		return err // lost leadership among them
	}
	log.Info("controller stopped")
	return nil
}

// lead runs the loop, and beside it what says on Nodes what it does.
func (f *fleet) lead(ctx context.Context, loop *control.Loop, history *page.History, log *slog.Logger) error {
	loop.Publish = func(_ membership.Inputs, d membership.Decision) { history.Take(d) }
	if f.nodes == nil {
		return loop.Run(ctx)
	}
	w := kube.NewWriter(f.nodes, f.Host, log)
	loop.Publish = func(in membership.Inputs, d membership.Decision) {
		history.Take(d)
		w.Offer(in, d)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return loop.Run(ctx) })
	group.Go(func() error { return w.Run(ctx) })
	return group.Wait()
}

// controllerPages serves what the controller says of itself.
func controllerPages(loop *control.Loop, reg *prometheus.Registry, round time.Duration) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	// Live: the process answers. A standby is live; a leader whose rounds have
	// stopped is not, and restarting it helps.
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		s := loop.Last()
		if s != nil && loop.Leading() && time.Since(s.Inputs.Now) > 10*round+time.Minute {
			http.Error(w, fmt.Sprintf("leading, but the last round is %s old", time.Since(s.Inputs.Now).Round(time.Second)), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	// Ready: it leads and has decided.
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		s := loop.Last()
		if s == nil {
			http.Error(w, "standing by: another controller leads, or none can be elected", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "leading; last round %s ago, took %s\n", time.Since(s.Inputs.Now).Round(time.Millisecond), s.Took.Round(time.Millisecond))
	})
	mux.HandleFunc("GET /decision", func(w http.ResponseWriter, _ *http.Request) {
		s := loop.Last()
		if s == nil {
			http.Error(w, "standing by: ask the controller that leads", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = printJSON(w, s.Decision) // a reader that went away is its own loss
	})
	return mux
}

// serve answers plain HTTP until the context ends.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
}
