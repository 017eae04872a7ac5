package member_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"suffrage/config"
	"suffrage/fitness"
	"suffrage/member"
	"suffrage/member/membertest"
)

// What a person got wrong is refused before etcd starts, naming the file or
// address and what to do.
func TestRefuses(t *testing.T) {
	c := membertest.New(t, membertest.Options{Size: 1, TLS: true})
	fresh := func(t *testing.T) member.Config {
		cfg := c.Another().Config
		cfg.DataDir = filepath.Join(t.TempDir(), "etcd")
		return cfg
	}
	for _, test := range []struct {
		name  string
		spoil func(*testing.T, *member.Config)
		start member.Start
		want  string // what the person has to read
	}{
		{"empty directory", func(t *testing.T, c *member.Config) {}, member.Start{},
			"run: suffrage cluster create"}, // an unmounted disk must not become a new cluster
		{"part of a datastore", func(t *testing.T, c *member.Config) {
			if err := os.MkdirAll(filepath.Join(c.DataDir, "member", "snap"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, member.Start{}, "no write-ahead log"},
		{"not one of its own cluster", func(t *testing.T, c *member.Config) { c.InitialCluster = map[string]string{"other": c.AdvertisePeer} },
			member.Start{Join: true}, "initial_cluster does not name h2"},
		{"another peer URL than its cluster gives it", func(t *testing.T, c *member.Config) {
			c.InitialCluster = map[string]string{"h2": "https://10.0.0.9:2380"}
		}, member.Start{Join: true}, "must be equal"},
		{"key for all to read", func(t *testing.T, c *member.Config) {
			data, err := os.ReadFile(c.Key)
			if err != nil {
				t.Fatal(err)
			}
			c.Key = filepath.Join(t.TempDir(), "open.key")
			mustWrite(t, c.Key, string(data), 0o644)
		}, member.Start{Join: true}, "chmod 0600 "},
		{"no certificate", func(t *testing.T, c *member.Config) { c.Cert += ".absent" }, member.Start{Join: true}, ".absent"},
		{"certificate of another host", func(t *testing.T, cfg *member.Config) {
			cfg.Cert, cfg.Key = c.Cert, c.Key
		}, member.Start{Join: true}, "does not name"},
		{"another authority", func(t *testing.T, cfg *member.Config) {
			cfg.CA = membertest.New(t, membertest.Options{Size: 1, TLS: true}).CA
		}, member.Start{Join: true}, "not accepted"},
		{"port in use", func(t *testing.T, cfg *member.Config) { cfg.ListenClient = c.Members[0].Config.ListenClient },
			member.Start{Join: true}, "is in use"},
		{"address of another host", func(t *testing.T, cfg *member.Config) { cfg.ListenClient = "https://192.0.2.1:2379" },
			member.Start{Join: true}, "does not have that address"},
		{"data directory open to others", func(t *testing.T, cfg *member.Config) {
			if err := os.Mkdir(cfg.DataDir, 0o755); err != nil {
				t.Fatal(err)
			}
		}, member.Start{Join: true}, "chmod 0700 "},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := fresh(t)
			cfg.InitialCluster = map[string]string{cfg.Name: cfg.AdvertisePeer}
			test.spoil(t, &cfg)
			err := test.start.Run(t.Context(), cfg)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
			if l, err := net.Listen("tcp", cfg.Metrics[len("http://"):]); err != nil {
				t.Errorf("a port stayed taken: %v", err)
			} else {
				l.Close()
			}
		})
	}
}

func TestValidate(t *testing.T) {
	good := member.DefaultConfig()
	good.Name, good.DataDir = "h1", "/var/lib/suffrage/etcd"
	good.ListenPeer, good.ListenClient = "http://127.0.0.1:2380", "http://127.0.0.1:2379"
	if err := good.Validate(); err != nil {
		t.Fatalf("a good configuration: %v", err)
	}
	for _, test := range []struct {
		why    string
		change func(*member.Config)
		key    string
	}{
		{"it is the host's name", func(c *member.Config) { c.Name = "" }, "name"},
		{"a unit's working directory is /", func(c *member.Config) { c.DataDir = "etcd" }, "data_dir"},
		{"etcd listens on addresses", func(c *member.Config) { c.ListenPeer = "http://h1:2380" }, "listen_peer"},
		{"nobody can dial 0.0.0.0", func(c *member.Config) { c.ListenClient = "http://0.0.0.0:2379" }, "advertise_client"},
		{"without a certificate there is no TLS", func(c *member.Config) { c.AdvertisePeer = "https://10.0.0.1:2380" }, "advertise_peer"},
		{"all or none", func(c *member.Config) { c.CA = "/ca.crt" }, "cert"},
		{"fewer than 5 heartbeats", func(c *member.Config) { c.ElectionTimeout = fitness.Duration(400 * time.Millisecond) }, "election_timeout"},
		{"etcd's own bound", func(c *member.Config) { c.ElectionTimeout = fitness.Duration(time.Minute) }, "election_timeout"},
		{"0 would be a busy loop", func(c *member.Config) { c.Heartbeat = 0 }, "heartbeat"},
		{"a size is not negative", func(c *member.Config) { c.Quota = -1 }, "quota"},
		{"metrics are without TLS", func(c *member.Config) { c.Metrics = "https://127.0.0.1:2381" }, "metrics"},
	} {
		c := good
		test.change(&c)
		if !names(c.Validate(), test.key) {
			t.Errorf("%s: %v does not name %s", test.why, c.Validate(), test.key)
		}
	}
}

func names(err error, key string) bool {
	j, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return false
	}
	for _, e := range j.Unwrap() {
		if p, ok := e.(config.Problem); ok && p.Key == key {
			return true
		}
	}
	return false
}
