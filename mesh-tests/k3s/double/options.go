package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

const defaultConfig = "/etc/rancher/k3s/config.yaml"

// Options are the flags of k3s that the double keeps.
type Options struct {
	Agent            bool // k3s agent
	DataDir          string
	NodeName         string
	NodeIP           string
	Server           string
	Token            string
	ClusterInit      bool
	DisableAPIServer bool
	DisableETCD      bool
	ExposeMetrics    bool
	ETCDArgs         []string
	Kubeconfig       string

	// Unknown are keys of the configuration files that are no flags.
	Unknown []string
	Tuning
}

// Tuning is what the double has and K3s has not: where loopback and the Node's password are,
// since hosts share a machine, and times that tests shorten. It comes from the environment,
// which a real k3s does not look at.
type Tuning struct {
	Loopback  netip.Addr
	Manage    time.Duration // how often the leader looks after learners
	Stall     time.Duration // without progress for so long, a learner is removed
	Condition time.Duration // a condition that stays as it is, is written so often
	Lease     time.Duration // of the removal controller
	// APIServer is the kube-apiserver's file.
	APIServer string
	// NodeDir is where the Node's password is kept, /etc/rancher/node.
	NodeDir string
}

// parse reads a command line, the configuration files it names, and the
// environment.
func parse(args []string, env func(string) string) (Options, error) {
	if len(args) == 0 || args[0] != "server" && args[0] != "agent" {
		return Options{}, errors.New("the command is server or agent, and flags after it")
	}
	o := Options{Agent: args[0] == "agent"}
	flags := o.flags(env)
	file := configFile(args[1:], env)
	fromFiles, unknown, err := configArgs(file, func(name string) bool { return flags.Lookup(name) != nil })
	if err != nil {
		return o, fmt.Errorf("configuration: %w", err)
	}
	o.Unknown = unknown
	// What the files say comes first: the command line wins, and adds to lists.
	if err := flags.Parse(append(fromFiles, args[1:]...)); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag", flags.Arg(0))
	}
	if o.Tuning, err = tuning(env); err != nil {
		return o, err
	}
	return o, o.validate()
}

func (o *Options) flags(env func(string) string) *pflag.FlagSet {
	f := pflag.NewFlagSet("k3s", pflag.ContinueOnError)
	f.SortFlags = false
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	or := func(name, otherwise string) string {
		if v := env(name); v != "" {
			return v
		}
		return otherwise
	}
	f.StringP("config", "c", defaultConfig, "configuration file")
	f.StringVarP(&o.DataDir, "data-dir", "d", or("K3S_DATA_DIR", "/var/lib/rancher/k3s"), "data directory")
	f.StringVar(&o.NodeName, "node-name", or("K3S_NODE_NAME", strings.ToLower(host)), "name of the Node")
	f.StringVarP(&o.NodeIP, "node-ip", "i", "", "address of the Node")
	f.StringVarP(&o.Server, "server", "s", env("K3S_URL"), "server to join")
	f.StringVarP(&o.Token, "token", "t", env("K3S_TOKEN"), "shared secret")
	if o.Agent {
		return f
	}
	f.BoolVar(&o.ClusterInit, "cluster-init", false, "start a new cluster")
	f.BoolVar(&o.DisableAPIServer, "disable-apiserver", false, "run no kube-apiserver")
	f.BoolVar(&o.DisableETCD, "disable-etcd", false, "run no etcd")
	f.BoolVar(&o.ExposeMetrics, "etcd-expose-metrics", false, "etcd's metrics also on the node's address")
	f.StringArrayVar(&o.ETCDArgs, "etcd-arg", nil, "key=value for etcd")
	f.StringVarP(&o.Kubeconfig, "write-kubeconfig", "o", "", "where the administrator's kubeconfig is written too")
	// There is neither here.
	f.Bool("disable-controller-manager", false, "")
	f.Bool("disable-scheduler", false, "")
	return f
}

// configFile is looked for before the flags are known.
func configFile(args []string, env func(string) string) string {
	if v := env("K3S_CONFIG_FILE"); v != "" {
		return v
	}
	for i, a := range args {
		for _, name := range []string{"--config", "-c"} {
			if v, is := strings.CutPrefix(a, name+"="); is {
				return v
			}
			if a == name && i+1 < len(args) {
				return args[i+1]
			}
		}
	}
	return defaultConfig
}

func (o Options) validate() error {
	if o.NodeName == "" {
		return errors.New("--node-name is empty")
	}
	if _, err := netip.ParseAddr(o.NodeIP); err != nil {
		return fmt.Errorf("--node-ip: %w: K3s would choose one, this double does not", err)
	}
	if o.DisableAPIServer && o.DisableETCD {
		return errors.New("--disable-apiserver and --disable-etcd: nothing is left to run")
	}
	if (o.Agent || o.DisableETCD) && o.Server == "" {
		return errors.New("--server is required")
	}
	for _, a := range o.ETCDArgs {
		if !strings.Contains(a, "=") {
			return fmt.Errorf("--etcd-arg=%s: want key=value", a)
		}
	}
	return nil
}

func tuning(env func(string) string) (Tuning, error) {
	t := Tuning{
		Loopback: netip.AddrFrom4([4]byte{127, 0, 0, 1}),
		Manage:   15 * time.Second, Stall: 5 * time.Minute, Condition: 5 * time.Minute, Lease: 45 * time.Second,
		APIServer: env("SUFFRAGE_KUBE_APISERVER"), NodeDir: "/etc/rancher/node",
	}
	if v := env("K3S_DOUBLE_NODE"); v != "" {
		t.NodeDir = v
	}
	for name, d := range map[string]*time.Duration{
		"K3S_DOUBLE_MANAGE": &t.Manage, "K3S_DOUBLE_STALL": &t.Stall, "K3S_DOUBLE_CONDITION": &t.Condition, "K3S_DOUBLE_LEASE": &t.Lease,
	} {
		if v := env(name); v != "" {
			var err error
			if *d, err = time.ParseDuration(v); err != nil || *d <= 0 {
				return t, fmt.Errorf("%s=%s: want a time such as 15s", name, v)
			}
		}
	}
	if v := env("K3S_DOUBLE_LOOPBACK"); v != "" {
		var err error
		if t.Loopback, err = netip.ParseAddr(v); err != nil {
			return t, fmt.Errorf("K3S_DOUBLE_LOOPBACK: %w", err)
		}
	}
	return t, nil
}
