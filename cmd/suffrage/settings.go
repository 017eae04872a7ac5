package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"suffrage/agent"
	"suffrage/apiserver"
	"suffrage/config"
	"suffrage/endpoint"
	"suffrage/fitness"
	"suffrage/identity"
	"suffrage/lease"
	"suffrage/member"
	"suffrage/membership"
	"suffrage/membership/etcd"
	"suffrage/page"
	"suffrage/snapshots"
)

const defaultConfig = "/etc/suffrage/suffrage.yaml"

// Settings are the one file of a host. Each section belongs to the package that
// uses it; agent, member and controller read the same file.
type Settings struct {
	// Host is the name of this host in the roster.
	Host string `yaml:"host"`
	// Dir holds host.key, roster.yaml, ca.crt and host.crt.
	Dir string `yaml:"dir"`
	// Data is where everything is written.
	Data string `yaml:"data"`
	// Flavour says who runs etcd: etcd, which are the members of Suffrage, or k3s.
	Flavour    string             `yaml:"flavour"`
	K3s        K3sSettings        `yaml:"k3s"`
	Agent      agent.Config       `yaml:"agent"`
	Member     member.Config      `yaml:"member"`
	Etcd       etcd.Config        `yaml:"etcd"`
	Controller ControllerSettings `yaml:"controller"`
	Kubernetes apiserver.Config   `yaml:"kubernetes"`
	Snapshots  snapshots.Config   `yaml:"snapshots"`
	Endpoint   endpoint.Config    `yaml:"endpoint"`
}

// ControllerSettings are the controller's and the owner's policy.
type ControllerSettings struct {
	// Mode is dry-run (it reports and changes nothing) or active (it acts), until
	// the owner says otherwise: suffrage mode.
	Mode string `yaml:"mode"`
	// Metrics is where /metrics, /livez, /readyz and /decision are served.
	Metrics string `yaml:"metrics"`
	// Page is the page in the browser.
	Page page.Config `yaml:"page"`
	// Round is the time between two rounds; one to twenty sample periods.
	Round fitness.Duration `yaml:"round"`
	// HostTimeout bounds the pull of one agent. Too low and a slow host seems
	// away; too high and one that is away delays the round.
	HostTimeout fitness.Duration `yaml:"host_timeout"`
	// SessionTTL is how long leadership outlives its holder, in whole seconds. It
	// must outlast two worst elections of etcd, or each of them unseats the
	// controller too.
	SessionTTL fitness.Duration `yaml:"session_ttl"`
	// Target is the number of voters, until the owner says otherwise: odd, 3 to 9.
	Target int `yaml:"target"`
	// Maximum is the highest number of members at any time: above target, since
	// a swap passes through target+1. 6 leaves room for five voters.
	Maximum int `yaml:"maximum"`
	// StallTime is how long a learner may make no progress (K3s: 5 minutes). The
	// cooldown after any membership change is this plus one window.
	StallTime fitness.Duration `yaml:"stall_time"`
	// Soak is how long all voters, the newcomer among them, have to be well
	// before the old one goes.
	Soak fitness.Duration `yaml:"soak"`
	// RegradeHeadroom is the memory, in bytes, that has to be available above the
	// memory floor for a whole window before a K3s server that was stepped down to
	// etcd-only steps back up. It has to be more than stepping down frees, or the
	// server would step up and down in turns: a K3s server takes 1606 MB, an agent 275
	// (K3s's resource profiling). 0: no server changes its grade by itself.
	RegradeHeadroom int64 `yaml:"regrade_headroom"`
	// LeaseStore is where the shared Lease is: etcd, or kubernetes, in the
	// section of that name. It has to be the same on every host, or there are two.
	LeaseStore string `yaml:"lease_store"`
	// Lease is the timing of the shared Lease.
	Lease lease.Config `yaml:"lease"`
	// Records is where the inputs of changed decisions are kept, at most 200
	// files and 256 MiB. Default: decisions under data.
	Records string         `yaml:"records"`
	Limits  fitness.Limits `yaml:"limits"`
}

// DefaultSettings are what a file without keys means.
func DefaultSettings() Settings {
	return Settings{
		Dir:     filepath.Dir(defaultConfig),
		Data:    "/var/lib/suffrage",
		Flavour: ownEtcd,
		K3s:     K3sSettings{DataDir: "/var/lib/rancher/k3s", ConfigDir: "/etc/rancher/k3s/config.yaml.d", AgentUnit: "k3s-agent.service"},
		Agent:   agent.DefaultConfig(),
		Member:  member.DefaultConfig(),
		Etcd:    etcd.DefaultConfig(),
		Controller: ControllerSettings{
			Mode:        "dry-run",
			Metrics:     "127.0.0.1:7402",
			Page:        page.DefaultConfig(),
			Round:       fitness.Duration(3 * time.Second),
			HostTimeout: fitness.Duration(2 * time.Second),
			SessionTTL:  fitness.Duration(etcd.DefaultTTL),
			Target:      3,
			Maximum:     6,
			StallTime:   fitness.Duration(5 * time.Minute),
			Soak:        fitness.Duration(30 * time.Second),
			LeaseStore:  inEtcd,
			Lease:       lease.DefaultConfig(),
			Limits:      fitness.DefaultLimits(),
		},
		Kubernetes: apiserver.DefaultConfig(),
		Snapshots:  snapshots.DefaultConfig(),
		Endpoint:   endpoint.DefaultConfig(),
	}
}

// Validate gives every problem with its key.
func (s Settings) Validate() error {
	var errs []error
	if s.Host == "" {
		errs = append(errs, config.Problem{Key: "host", Found: "nothing", Allowed: "this host's name in the roster"})
	}
	for _, p := range []struct{ key, path string }{{"dir", s.Dir}, {"data", s.Data}} {
		if !filepath.IsAbs(p.path) {
			errs = append(errs, config.Problem{Key: p.key, Found: strconv.Quote(p.path), Allowed: "an absolute path"})
		}
	}
	errs = append(errs, s.validateFlavour())
	return errors.Join(append(errs,
		config.Under("agent", s.Agent.Validate()),
		config.Under("snapshots", s.Snapshots.Validate()),
		config.Under("endpoint", s.Endpoint.Validate()),
		config.Under("kubernetes", s.Kubernetes.Validate()),
		config.Under("controller", s.Controller.validate(s.Agent.Period, s.Member.ElectionTimeout)))...)
}

// validate checks the timing inequalities, each message naming both settings.
func (c ControllerSettings) validate(period, election fitness.Duration) error {
	var errs []error
	bad := func(key, found, allowed string) {
		errs = append(errs, config.Problem{Key: key, Found: found, Allowed: allowed})
	}
	if c.Mode != membership.DryRun && c.Mode != membership.Active {
		bad("mode", strconv.Quote(c.Mode), "dry-run or active")
	}
	if c.Target < 3 || c.Target > 9 || c.Target%2 == 0 {
		bad("target", strconv.Itoa(c.Target), "3, 5, 7 or 9: an even number of voters tolerates no more failures than one fewer")
	}
	if c.Maximum <= c.Target {
		bad("maximum", strconv.Itoa(c.Maximum), fmt.Sprintf("more than controller.target (%d), since a swap passes through target+1", c.Target))
	}
	if c.Maximum > fitness.MaxVoters {
		bad("maximum", strconv.Itoa(c.Maximum), fmt.Sprintf("at most %d", fitness.MaxVoters))
	}
	if r := c.Round; r < period || r > 20*period || r.Std() < 50*time.Millisecond {
		bad("round", r.String(), fmt.Sprintf("between agent.period (%s) and 20 of them, at least 50ms", period))
	}
	if c.HostTimeout.Std() < 100*time.Millisecond || c.HostTimeout.Std() > time.Minute {
		bad("host_timeout", c.HostTimeout.String(), "100ms to 1m")
	}
	if least := etcd.MinTTL(election.Std()); c.SessionTTL.Std() < max(least, time.Second) {
		bad("session_ttl", c.SessionTTL.String(), fmt.Sprintf("at least %s: four times member.election_timeout (%s)", max(least, time.Second), election))
	}
	if c.StallTime <= 0 {
		bad("stall_time", c.StallTime.String(), "more than 0; K3s uses 5m")
	}
	if h := c.RegradeHeadroom; h != 0 && h < leastHeadroom {
		bad("regrade_headroom", strconv.FormatInt(h, 10), fmt.Sprintf("0 for no regrades, or %d or more, in bytes: a server steps up with this above the floor of limits.storage_quota and limits.memory_used_max, below which it steps down", leastHeadroom))
	}
	if c.LeaseStore != inEtcd && c.LeaseStore != inKubernetes {
		bad("lease_store", strconv.Quote(c.LeaseStore), inEtcd+" or "+inKubernetes)
	}
	c.Lease.ElectionTimeout = election
	errs = append(errs, config.Under("lease", c.Lease.Validate()), config.Under("page", c.Page.Validate()))
	l := c.Limits
	for _, d := range []struct {
		key string
		d   fitness.Duration
	}{{"limits.election_timeout", l.ElectionTimeout}, {"limits.wal_fsync", l.WALFsync}, {"limits.backend_commit", l.BackendCommit}} {
		if d.d.Std() < time.Millisecond || d.d.Std() > time.Minute {
			bad(d.key, d.d.String(), "1ms to 1m")
		}
	}
	if l.StorageQuota < 0 {
		bad("limits.storage_quota", strconv.FormatInt(l.StorageQuota, 10), "0 or more, in bytes")
	}
	if l.MemoryUsedMax <= 0 || l.MemoryUsedMax > 1 {
		bad("limits.memory_used_max", strconv.FormatFloat(l.MemoryUsedMax, 'g', -1, 64), "a share above 0, up to 1")
	}
	return errors.Join(errs...)
}

// policy is what of the settings Decide looks at.
func (s Settings) policy() membership.Policy {
	c := s.Controller
	p := membership.Policy{Mode: c.Mode, Target: c.Target, Maximum: c.Maximum, Period: s.Agent.Period, StallTime: c.StallTime, Soak: c.Soak, Limits: c.Limits}
	if s.Flavour == k3s {
		p.Flavour, p.RegradeHeadroom = k3s, c.RegradeHeadroom
	}
	return p
}

// Files under dir, the same on every host.
func (s Settings) keyFile() string    { return filepath.Join(s.Dir, "host.key") }
func (s Settings) rosterFile() string { return filepath.Join(s.Dir, "roster.yaml") }

// records is where the inputs of changed decisions are kept.
func (s Settings) records() string {
	if s.Controller.Records != "" {
		return s.Controller.Records
	}
	return filepath.Join(s.Data, "decisions")
}

// loadSettings reads the file that --config names.
func loadSettings(c *cobra.Command) (Settings, error) {
	path, _ := c.Flags().GetString("config")
	s, err := readSettings(path)
	if err != nil {
		return s, usage(err)
	}
	s.fill()
	return s, nil
}

// readSettings reads the file twice where the flavour has other defaults.
func readSettings(path string) (Settings, error) {
	s := DefaultSettings()
	err := config.Load(path, &s)
	if s.Flavour == k3s {
		s = DefaultSettings()
		s.withK3s()
		err = config.Load(path, &s)
	}
	return s, err
}

// fill puts in place what follows from other settings.
func (s *Settings) fill() {
	if s.Flavour == k3s {
		s.fillK3s()
	}
	secure := func(e string) bool { return strings.HasPrefix(e, "https:") }
	if e := &s.Etcd; e.CA+e.Cert+e.Key == "" && slices.ContainsFunc(e.Endpoints, secure) {
		e.CA, e.Cert, e.Key = filepath.Join(s.Dir, "ca.crt"), filepath.Join(s.Dir, "host.crt"), s.keyFile()
	}
	if s.Snapshots.Dir == "" {
		s.Snapshots.Dir = filepath.Join(s.Data, "snapshots")
	}
	if s.Member.DataDir == "" {
		s.Member.DataDir = filepath.Join(s.Data, "etcd")
	}
}

// loadHost reads what every networked command needs: the settings, this host's
// key and the roster that this host is in.
func loadHost(c *cobra.Command) (Settings, *identity.Key, *identity.Roster, error) {
	s, err := loadSettings(c)
	if err != nil {
		return s, nil, nil, err
	}
	key, err := identity.LoadKey(s.keyFile())
	if err != nil {
		return s, nil, nil, usage(err)
	}
	roster, err := identity.LoadRoster(s.rosterFile())
	if err != nil {
		return s, nil, nil, usage(err)
	}
	if err := s.inRoster(c.Flag("config").Value.String(), key, roster); err != nil {
		return s, nil, nil, usage(err)
	}
	return s, key, roster, nil
}

// inRoster says what is wrong with this host's entry: without the right one no
// other host talks to this one.
func (s Settings) inRoster(path string, key *identity.Key, roster *identity.Roster) error {
	h, ok := roster.ByName(s.Host)
	if !ok {
		return fmt.Errorf("%s: host %q is not in %s; add it there: suffrage identity show prints its entry", path, s.Host, s.rosterFile())
	}
	if h.Fingerprint != key.Fingerprint() {
		return fmt.Errorf("%s: %s has fingerprint %s, the key in %s has %s: put the right one in the roster of every host",
			s.rosterFile(), s.Host, h.Fingerprint, s.keyFile(), key.Fingerprint())
	}
	return nil
}
