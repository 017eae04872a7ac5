package member

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"suffrage/config"
	"suffrage/fitness"
)

// Config is one etcd member.
type Config struct {
	// Name is the host's name. It cannot change once the member exists.
	Name string `yaml:"name"`
	// DataDir holds the datastore; etcd writes member/ in it. Its filesystem's
	// fsync is on the path of every write of the whole cluster.
	DataDir string `yaml:"data_dir"`
	// ListenPeer and ListenClient are URLs to listen on.
	ListenPeer   string `yaml:"listen_peer"`
	ListenClient string `yaml:"listen_client"`
	// AdvertisePeer and AdvertiseClient are URLs that the others use. Empty: the
	// same as listened on. The peer URL's address is how a host is found from
	// its member, so it is the host's mesh address.
	AdvertisePeer   string `yaml:"advertise_peer"`
	AdvertiseClient string `yaml:"advertise_client"`
	// InitialCluster are the names and peer URLs of all members of a new
	// cluster. It is used once, when the cluster is made.
	InitialCluster map[string]string `yaml:"initial_cluster"`
	// Heartbeat is the time between a leader's signs of life, 1ms to 10s. Below
	// the round trip to the slowest voter, followers miss them.
	Heartbeat fitness.Duration `yaml:"heartbeat"`
	// ElectionTimeout is how long a follower waits for one, at most 50s; at
	// least 5 heartbeats, usually 10. All limits on round trips are fractions of
	// it. It must be the same on all members.
	ElectionTimeout fitness.Duration `yaml:"election_timeout"`
	// Metrics is the URL to serve metrics and health on, without TLS, or empty.
	Metrics string `yaml:"metrics"`
	// Quota is the most bytes that the database may take; past it etcd refuses
	// writes. 0 is etcd's default of 2 GiB. It must fit in memory.
	Quota int64 `yaml:"quota"`
	// CA, Cert and Key are files for both peers and clients, who must show a
	// certificate of the same CA. All empty: no TLS, and http URLs.
	CA   string `yaml:"ca"`
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// DefaultConfig has etcd's own defaults and nothing that belongs to one host.
func DefaultConfig() Config {
	return Config{
		Heartbeat:       fitness.Duration(100 * time.Millisecond),
		ElectionTimeout: fitness.Duration(time.Second),
		Metrics:         "http://127.0.0.1:2381",
		Quota:           2 << 30,
	}
}

// maxElection is etcd's own bound.
const maxElection = 50 * time.Second

// Validate gives every problem with its key. It reads no file.
func (c Config) Validate() error {
	var errs []error
	bad := func(key, found, allowed string) {
		errs = append(errs, config.Problem{Key: key, Found: found, Allowed: allowed})
	}
	if c.Name == "" || strings.ContainsAny(c.Name, ",= \t\n") {
		bad("name", fmt.Sprintf("%q", c.Name), "the host's name")
	}
	if !filepath.IsAbs(c.DataDir) {
		bad("data_dir", fmt.Sprintf("%q", c.DataDir), "an absolute path")
	}
	c = c.filled()
	scheme := "http"
	if c.Cert != "" {
		scheme = "https"
	}
	for _, u := range c.urls() {
		if why := badURL(u.value, u.scheme(scheme), u.bound); why != "" {
			bad(u.key, fmt.Sprintf("%q", u.value), why)
		}
	}
	if n := btoi(c.CA != "") + btoi(c.Cert != "") + btoi(c.Key != ""); n != 0 && n != 3 {
		bad("cert", fmt.Sprintf("%d of ca, cert and key", n), "all three, or none for no TLS")
	}
	h, e := c.Heartbeat.Std(), c.ElectionTimeout.Std()
	if h < time.Millisecond || h > 10*time.Second {
		bad("heartbeat", h.String(), "1ms to 10s; 100ms unless the round trip to the slowest voter is longer")
	} else if e < 5*h || e > maxElection {
		bad("election_timeout", e.String(), fmt.Sprintf("%v (5 heartbeats) to %v", 5*h, maxElection))
	}
	if c.Quota < 0 || c.Quota > 100<<30 {
		bad("quota", fmt.Sprintf("%d", c.Quota), "0 (etcd's 2 GiB) to 107374182400 bytes")
	}
	return errors.Join(errs...)
}

// filled has the advertised URLs in place.
func (c Config) filled() Config {
	if c.AdvertisePeer == "" {
		c.AdvertisePeer = c.ListenPeer
	}
	if c.AdvertiseClient == "" {
		c.AdvertiseClient = c.ListenClient
	}
	return c
}

type configURL struct {
	key, value string
	bound      bool // listened on: must be an address, not a name
	plain      bool // never TLS
}

func (u configURL) scheme(s string) string {
	if u.plain {
		return "http"
	}
	return s
}

func (c Config) urls() []configURL {
	out := []configURL{
		{key: "listen_peer", value: c.ListenPeer, bound: true},
		{key: "listen_client", value: c.ListenClient, bound: true},
		{key: "advertise_peer", value: c.AdvertisePeer},
		{key: "advertise_client", value: c.AdvertiseClient},
	}
	if c.Metrics != "" {
		out = append(out, configURL{key: "metrics", value: c.Metrics, bound: true, plain: true})
	}
	for _, name := range slices.Sorted(maps.Keys(c.InitialCluster)) {
		out = append(out, configURL{key: "initial_cluster." + name, value: c.InitialCluster[name]})
	}
	return out
}

func badURL(s, scheme string, bound bool) string {
	want := scheme + "://address:port"
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != scheme || u.Hostname() == "" || u.Port() == "" || strings.Trim(u.Path, "/") != "":
		return want
	case bound && net.ParseIP(u.Hostname()) == nil && u.Hostname() != "localhost":
		return want + " with an IP address of this host"
	case !bound && net.ParseIP(u.Hostname()).IsUnspecified():
		return want + " that others can reach; 0.0.0.0 is only for listening"
	}
	return ""
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
