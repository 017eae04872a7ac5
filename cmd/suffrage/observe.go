package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"suffrage/fitness"
	"suffrage/membership/etcd"
	"suffrage/observe"
)

type observeFlags struct {
	o          observe.Options
	k3s        bool
	k3sDataDir string
	timeout    time.Duration
}

func newObserveCmd() *cobra.Command {
	f := observeFlags{}
	c := &cobra.Command{
		Use:   "observe",
		Short: "Look at any etcd cluster, without installing or writing anything",
		Long: `Looks at an etcd cluster (3.5 to 3.7) for a minute and prints, per member: role,
version, database, lag, opinion of the member list, alarms, round trip from
here, disk p99 from its metrics; then which guards would refuse to move a vote
right now, and why. It needs no agent and no settings file.

It only reads: nothing enters etcd's log. The keys and certificates given are
read and sent nowhere but to the endpoints.

Exit codes: 0 a report was printed, whatever it says; 1 no endpoint gave a
member list, with the reason for each; 2 wrong flags. docs/observe.md explains
each column.`,
		Example: `  sudo suffrage observe --k3s
  suffrage observe --endpoints https://10.0.0.1:2379 --cacert ca.crt \
      --cert client.crt --key client.key
  suffrage observe --endpoints http://127.0.0.1:2379 --for 10s -o json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	p := c.Flags()
	p.StringSliceVar(&f.o.Etcd.Endpoints, "endpoints", nil, "client URLs of voters, such as https://10.0.0.1:2379; one is enough")
	p.StringVar(&f.o.Etcd.CA, "cacert", "", "file with the CA of etcd's server certificates (default: the system's)")
	p.StringVar(&f.o.Etcd.Cert, "cert", "", "file with a client certificate")
	p.StringVar(&f.o.Etcd.Key, "key", "", "file with its key")
	p.BoolVar(&f.k3s, "k3s", false, "use the embedded etcd of the K3s server on this host")
	p.StringVar(&f.k3sDataDir, "k3s-data-dir", observe.K3sDataDir, "K3s's --data-dir")
	p.DurationVar(&f.o.For, "for", time.Minute, "how long to measure, 1s to 1h")
	p.StringSliceVar(&f.o.Metrics, "metrics", nil, "metrics pages to read (default: each member's client URL, port 2381 there, and 127.0.0.1:2381)")
	p.DurationVar(&f.o.ElectionTimeout, "election-timeout", 0, "the cluster's, where no member tells (default: 5s with --k3s, else 1s)")
	p.DurationVar(&f.timeout, "timeout", 2*time.Second, "for all that is asked of one member, 100ms to 1m")
	return c
}

// options checks the flags and finds K3s.
func (f *observeFlags) options() (observe.Options, error) {
	o := f.o
	o.K3s = f.k3s
	e := etcd.DefaultConfig()
	if f.k3s {
		k, err := observe.K3s(f.k3sDataDir)
		if err != nil {
			return o, err
		}
		e = k
		if o.Etcd.CA+o.Etcd.Cert+o.Etcd.Key != "" {
			return o, usage(errors.New("--k3s brings its own certificates; leave out --cacert, --cert and --key"))
		}
	} else {
		e.CA, e.Cert, e.Key = o.Etcd.CA, o.Etcd.Cert, o.Etcd.Key
	}
	if len(o.Etcd.Endpoints) > 0 {
		e.Endpoints = o.Etcd.Endpoints
	}
	for i, u := range e.Endpoints {
		e.Endpoints[i] = strings.TrimRight(u, "/")
	}
	e.Timeout = fitness.Duration(f.timeout)
	o.Etcd = e
	if len(e.Endpoints) == 0 {
		return o, usage(errors.New("say where etcd is: --endpoints https://ADDRESS:2379 (with --cacert, --cert, --key), or --k3s on a K3s server"))
	}
	if err := e.Validate(); err != nil {
		return o, usage(err)
	}
	if o.For < time.Second || o.For > time.Hour {
		return o, usage(fmt.Errorf("--for %v: allowed: 1s to 1h", o.For))
	}
	if o.ElectionTimeout < 0 || o.ElectionTimeout > time.Minute {
		return o, usage(fmt.Errorf("--election-timeout %v: allowed: up to 1m", o.ElectionTimeout))
	}
	return o, nil
}

func (f *observeFlags) run(c *cobra.Command) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	progress := newProgress(c.ErrOrStderr())
	o.Progress = progress.say
	r, err := observe.Run(c.Context(), o)
	progress.end()
	if err != nil && !errors.Is(err, observe.ErrUnreachable) {
		return err
	}
	if wantsJSON(c) {
		if err := printJSON(c.OutOrStdout(), r); err != nil {
			return err
		}
	}
	if err != nil {
		return errors.New(unreachable(r))
	}
	if !wantsJSON(c) {
		printObserved(c.OutOrStdout(), r)
	}
	return nil
}

// unreachable says for each endpoint what was wrong and what to do.
func unreachable(r observe.Report) string {
	var b strings.Builder
	b.WriteString("observe: no endpoint gave a member list")
	for _, t := range r.Troubles {
		fmt.Fprintf(&b, "\n%s\n%s", wrap(t.String(), "  "), wrap("→ "+t.Next, "    "))
	}
	return b.String()
}

// progress is one line on stderr that is written over on a terminal, and said
// every 15 seconds elsewhere.
type progress struct {
	w        io.Writer
	terminal bool
	last     time.Duration
	said     bool
}

func newProgress(w io.Writer) *progress {
	return &progress{w: w, terminal: isTerminal(w), last: -time.Hour}
}

func (p *progress) say(elapsed time.Duration, members, responding int) {
	if !p.terminal && elapsed-p.last < 15*time.Second {
		return
	}
	p.last, p.said = elapsed, true
	text := fmt.Sprintf("observing: %3.0f s; %d of %d members respond", elapsed.Seconds(), responding, members)
	if p.terminal {
		fmt.Fprintf(p.w, "\r%s", text)
		return
	}
	fmt.Fprintln(p.w, text)
}

func (p *progress) end() {
	if p.terminal && p.said {
		fmt.Fprintf(p.w, "\r%60s\r", "")
	}
}
