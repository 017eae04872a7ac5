package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/term"

	"suffrage/demo"
	"suffrage/fitness"
	"suffrage/lease"
	leaseetcd "suffrage/lease/etcd"
	"suffrage/membership"
	"suffrage/membership/etcd"
)

// The demo's limits. Five hosts share one disk and a few cores with whatever
// else runs there, so the limits of etcd's guidance would judge the machine and
// not the demo. Measured on two cores with a Go build beside the demo: p99 of
// wal_fsync up to 50 ms, of backend_commit up to 59 ms; the rest is for disks
// that are slower than that one. Round trips keep etcd's limits.
const (
	demoWALFsync      = 200 * time.Millisecond
	demoBackendCommit = 500 * time.Millisecond
	// A learner is given up, and nothing new is started, for this long: five
	// minutes on real hosts, of which nobody would wait for the second swap here.
	demoStallTime = 30 * time.Second
	demoQuota     = 256 << 20 // bytes, of each member's database and of memory to be left
)

func newDemoCmd() *cobra.Command {
	o := demo.Options{}
	var slow, slowDisk []string
	var until, mode string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run a fleet of five hosts on this machine and watch a voter get slow",
		Long: `Starts five agents, three etcd members and two controllers, each a process of
its own on a loopback address of its own, without root. Once all hosts are fit
it makes one slow and shows the dry-run decision change. Ctrl-C stops it all.

Without --slow, --slow-disk and --until it does --slow h3=150ms, and goes on
until Ctrl-C if its input is a terminal, else until the decision. --until stopped
goes on until Ctrl-C wherever it runs.

--slow adds to every round trip of a host, for the agents' pings and for etcd's
peers. --slow-disk holds back every fsync of a host's member and agent; it needs
seccomp's user notification (Linux 5.5), no root.

--until decision ends with exit code 0 when a plan, or a refusal that is not
about unfilled windows, has held for a window, and prints it. --until steady
does the same for "nothing needs doing"; --slow then holds from the start.

Exit codes: 0 what --until waits for was reached, or Ctrl-C without --until; 1 it
was not, or a process could not be started or ended; 2 wrong flags.`,
		Example: `  suffrage demo
  suffrage demo --slow h2=300ms
  suffrage demo --slow-disk h2=600ms --until decision -o json
  suffrage demo --dir /tmp/fleet --slow h3=0s      # a fleet to try things on
  suffrage demo --voters 1 --stall-time 20s        # one that is to grow: suffrage target 3`,
		Args: cobra.NoArgs,
	}
	f := c.Flags()
	f.StringArrayVar(&slow, "slow", nil, "HOST=DURATION added to the host's round trips, such as h3=150ms (repeatable)")
	f.StringArrayVar(&slowDisk, "slow-disk", nil, "HOST=DURATION added to each fsync of the host's member and agent (repeatable)")
	f.DurationVar(&o.Period, "period", 50*time.Millisecond, "time between two samples; a window is 100 of them")
	f.StringVar(&until, "until", "", "end by itself at the first: decision, steady or swap; or only when stopped")
	f.IntVar(&o.Voters, "voters", 3, "how many of the five hosts have a vote from the start, 1 to 5")
	f.DurationVar(&o.StallTime, "stall-time", demoStallTime, "controller.stall_time: with a window, the cooldown between two operations")
	f.StringVar(&mode, "mode", "", "active or dry-run (default active; with --until decision or steady dry-run)")
	f.DurationVar(&o.For, "for", 0, "give up after this long (default with --until: 2m and 12 windows)")
	f.StringVar(&o.Dir, "dir", "", "directory of the fleet, missing or empty, kept (default: a temporary one, removed at the end)")
	f.BoolVar(&o.Keep, "keep", false, "keep the temporary directory")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var err error
		if o.Slow, err = hostDurations("slow", slow); err != nil {
			return usage(err)
		}
		if o.SlowDisk, err = hostDurations("slow-disk", slowDisk); err != nil {
			return usage(err)
		}
		stays := until == "stopped"
		if !stays {
			o.Until = demo.Until(until)
		}
		if err := demoMode(&o, mode); err != nil {
			return usage(err)
		}
		demoDefaults(&o, stays || term.IsTerminal(int(os.Stdin.Fd())))
		if err := o.Validate(); err != nil {
			return usage(err)
		}
		return runDemo(c, o)
	}
	c.AddCommand(newSlowExecCmd())
	return c
}

// newSlowExecCmd is what the demo starts the processes of a host with a slow
// disk through. It is of no use to people.
func newSlowExecCmd() *cobra.Command {
	return &cobra.Command{
		Use:                "slow-exec",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE:               func(_ *cobra.Command, args []string) error { return demo.SlowExec(args) },
	}
}

// demoMode reads --mode. A decision that is acted on does not hold for a window,
// so waiting for one means dry-run where nobody says otherwise.
func demoMode(o *demo.Options, mode string) error {
	switch mode {
	case membership.Active:
		o.Active = true
	case membership.DryRun:
	case "":
		o.Active = o.Until == demo.UntilStopped || o.Until == demo.UntilSwap
	default:
		return fmt.Errorf("--mode %q: allowed are %s and %s", mode, membership.Active, membership.DryRun)
	}
	return nil
}

// demoDefaults fills in what nobody said. stays: somebody is there to stop it.
func demoDefaults(o *demo.Options, stays bool) {
	if len(o.Slow)+len(o.SlowDisk) == 0 && o.Until == demo.UntilStopped {
		o.Slow = map[string]time.Duration{"h3": 150 * time.Millisecond}
	}
	if o.Until == demo.UntilStopped && !stays {
		o.Until = demo.UntilDecision
		if o.Active {
			o.Until = demo.UntilSwap
		}
	}
	if o.Until != demo.UntilStopped && o.For == 0 {
		o.For = 2*time.Minute + 12*fitness.WindowSize*o.Period
	}
}

func hostDurations(flag string, args []string) (map[string]time.Duration, error) {
	out := map[string]time.Duration{}
	for _, a := range args {
		host, text, ok := strings.Cut(a, "=")
		d, err := time.ParseDuration(text)
		if !ok || err != nil {
			return nil, fmt.Errorf("--%s %q: want HOST=DURATION, such as h3=150ms", flag, a)
		}
		out[host] = d
	}
	return out, nil
}

func runDemo(c *cobra.Command, o demo.Options) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	o.Program = program
	o.SlowExec = []string{program, "demo", "slow-exec"}
	o.Configure = func(f *demo.Fleet, h demo.Host) (any, error) { return demoSettings(f, h, o) }
	o.Mark = markAll
	o.Client = demoClient
	o.Ended = demoEnded
	o.Hints = demoHints
	o.Notes = []string{fmt.Sprintf("five hosts share this machine's disk, so the demo allows wal_fsync %v (etcd's guidance: 10ms), backend_commit %v (25ms) and memory down to %d MiB",
		demoWALFsync, demoBackendCommit, demoQuota>>20)}
	o.Progress = c.ErrOrStderr()
	o.Width = func() int {
		w, _, err := term.GetSize(int(os.Stderr.Fd()))
		if err != nil {
			return 0
		}
		return w
	}
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	// A reader that goes away (demo 2>&1 | head) ends it as Ctrl-C does; the
	// default ends it at once and leaves the temporary directory behind. The signal
	// itself says nothing: broken connections of the relay raise it too.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	o.Progress = &listened{w: o.Progress, gone: cancel}
	r, err := demo.Run(ctx, o)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return errors.New("demo: stopped before it could end by itself")
		}
		return err
	}
	switch {
	case o.Until == demo.UntilStopped:
		return nil
	case o.Until == demo.UntilSwap:
		return printSwap(c, r)
	}
	return printDecision(c, r.Decision)
}

// DemoSwap is what `suffrage demo --until swap -o json` prints: the operation's
// record, and what a client saw that wrote all the time.
type DemoSwap struct {
	membership.Operation
	Writes       int   `json:"writes"`
	FailedWrites int   `json:"failed_writes"`
	SlowestWrite int64 `json:"slowest_write_ms"`
}

func printSwap(c *cobra.Command, r demo.Result) error {
	if wantsJSON(c) {
		if err := printJSON(c.OutOrStdout(), DemoSwap{*r.Operation, r.Writes.Writes, r.Writes.Failed, r.Writes.Slowest.Milliseconds()}); err != nil {
			return err
		}
	}
	if r.Operation.Outcome != membership.Completed {
		return &exitError{code: exitFailed}
	}
	return nil
}

// demoClient is a client of the demo's etcd, as any program on h1 would have it.
func demoClient(f *demo.Fleet) (*clientv3.Client, error) {
	s, err := demoSettings(f, f.Hosts[0], demo.Options{Period: 50 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	return s.Etcd.Client()
}

// demoEnded gives the newest operation that ended.
func demoEnded(ctx context.Context, f *demo.Fleet) (*membership.Operation, error) {
	client, err := demoClient(f)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	ops, err := etcd.Operations(ctx, client, 1)
	if err != nil || len(ops) == 0 {
		return nil, err
	}
	return &ops[0], nil
}

// listened writes for as long as somebody reads.
type listened struct {
	w    io.Writer
	gone func()
}

func (l *listened) Write(p []byte) (int, error) {
	n, err := l.w.Write(p)
	if err != nil {
		l.gone()
	}
	return n, err
}

// demoSettings is the settings file of one host, the same as on a real one but
// for addresses, limits and speed.
func demoSettings(f *demo.Fleet, h demo.Host, o demo.Options) (Settings, error) {
	s, period := DefaultSettings(), o.Period
	if o.Active {
		s.Controller.Mode = membership.Active
	}
	s.Controller.Soak = fitness.Duration(3 * time.Second)
	if o.StallTime > 0 { // a client of the demo's has no need of it
		s.Controller.StallTime = fitness.Duration(o.StallTime)
	}
	s.Controller.Lease = lease.Config{Duration: fitness.Duration(15 * time.Second), Renew: fitness.Duration(time.Second)}
	s.Host, s.Dir, s.Data = h.Name, h.Dir, h.Path(demo.DataDir)

	s.Agent.Listen = fmt.Sprintf("%s:%d", h.Real, demo.AgentPort)
	s.Agent.Metrics = fmt.Sprintf("%s:%d", h.Real, demo.AgentMetricsPort)
	s.Agent.MemberMetrics = fmt.Sprintf("http://%s:%d/metrics", h.Real, demo.MemberMetricsPort)
	s.Agent.Zone = h.Zone
	s.Agent.Unit = h.Path(demo.UnitSocket)
	s.Agent.Period = fitness.Duration(period)
	s.Agent.PingTimeout = fitness.Duration(min(20*period, time.Second))

	s.Etcd.Endpoints = f.ClientURLs()
	s.Etcd.CA, s.Etcd.Cert, s.Etcd.Key = h.Path(demo.CAFile), h.Path(demo.CertFile), h.Path(demo.KeyFile)

	s.Member.Name, s.Member.DataDir = h.Name, h.Path("data/etcd")
	s.Member.CA, s.Member.Cert, s.Member.Key = s.Etcd.CA, s.Etcd.Cert, s.Etcd.Key
	s.Member.ListenPeer = fmt.Sprintf("https://%s:%d", h.Real, demo.PeerPort)
	s.Member.AdvertisePeer = fmt.Sprintf("https://%s:%d", h.Mesh, demo.PeerPort)
	s.Member.ListenClient = fmt.Sprintf("https://%s:%d", h.Mesh, demo.ClientPort)
	s.Member.AdvertiseClient = s.Member.ListenClient
	s.Member.InitialCluster = f.InitialCluster()
	s.Member.Metrics = fmt.Sprintf("http://%s:%d", h.Real, demo.MemberMetricsPort)
	s.Member.Quota = demoQuota

	// The demo goes the same way at any hour.
	s.Snapshots.At = []string{}

	s.Controller.Metrics = fmt.Sprintf("%s:%d", h.Real, demo.ControllerMetricsPort)
	s.Controller.Page.Listen = fmt.Sprintf("%s:%d", h.Real, demo.PagePort)
	s.Controller.Page.Writes = true // a fleet to try things on
	s.Controller.Round = fitness.Duration(max(period, min(10*period, time.Second)))
	s.Controller.SessionTTL = fitness.Duration(7 * time.Second)
	s.Controller.Limits.WALFsync = fitness.Duration(demoWALFsync)
	s.Controller.Limits.BackendCommit = fitness.Duration(demoBackendCommit)
	s.Controller.Limits.StorageQuota = demoQuota
	s.Controller.Limits.MemoryUsedMax = 1
	return s, s.Validate()
}

// markAll makes every host eligible, as an owner would with
// `suffrage host eligible`.
func markAll(ctx context.Context, f *demo.Fleet) error {
	s, err := demoSettings(f, f.Hosts[0], demo.Options{Period: 50 * time.Millisecond})
	if err != nil {
		return err
	}
	client, err := s.Etcd.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, h := range f.Hosts {
		_, err := etcd.UpdateMark(ctx, client, h.Name, func(m membership.Mark) (membership.Mark, error) {
			m.Eligible = &membership.Say{Value: true, By: "demo", At: time.Now().UTC(), Reason: "all five hosts of the demo may vote"}
			return m, nil
		})
		if err != nil {
			return err
		}
	}
	// The Lease of a new cluster is free from the start.
	if err := lease.Create(ctx, leaseetcd.New(client), s.Controller.Lease.Duration); err != nil && !errors.Is(err, lease.ErrConflict) {
		return err
	}
	return nil
}

func demoHints(f *demo.Fleet) string {
	h := f.Hosts[0]
	cfg := "--config " + h.Path(demo.ConfigFile)
	program, err := os.Executable()
	if err != nil {
		program = "suffrage"
	}
	return fmt.Sprintf(`         in another terminal:
           %[1]s status %[2]s
           %[1]s explain h3 %[2]s
           %[1]s plan %[2]s
           %[1]s host pin h3 --reason "try it" %[2]s
           curl -s http://%[3]s:%[4]d/metrics
         in a browser: http://%[3]s:%[5]d/
         Ctrl-C stops everything.`, program, cfg, h.Real, demo.AgentMetricsPort, demo.PagePort)
}
