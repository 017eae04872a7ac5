package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What the files say, in K3s's order of precedence.
func TestConfigFiles(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		args  string
		env   map[string]string
		want  func(Options) bool
	}{
		{"the file", map[string]string{"config.yaml": "node-name: a\n"}, "", nil,
			func(o Options) bool { return o.NodeName == "a" }},
		{"a drop-in wins over the file", map[string]string{"config.yaml": "node-name: a\n", "config.yaml.d/1.yaml": "node-name: b\n"}, "", nil,
			func(o Options) bool { return o.NodeName == "b" }},
		{"the last drop-in by name wins", map[string]string{"config.yaml.d/20.yaml": "node-name: c\n", "config.yaml.d/10.yml": "node-name: b\n"}, "", nil,
			func(o Options) bool { return o.NodeName == "c" }},
		{"drop-ins without a file", map[string]string{"config.yaml.d/1.yaml": "disable-etcd: true\nserver: https://s:6443"}, "", nil,
			func(o Options) bool { return o.DisableETCD }},
		{"another ending is no drop-in", map[string]string{"config.yaml": "node-name: a\n", "config.yaml.d/1.txt": "node-name: b\n"}, "", nil,
			func(o Options) bool { return o.NodeName == "a" }},
		{"the command line wins", map[string]string{"config.yaml": "node-name: a\n"}, "--node-name=z", nil,
			func(o Options) bool { return o.NodeName == "z" }},
		{"a drop-in takes a flag back", map[string]string{"config.yaml": "cluster-init: true\n", "config.yaml.d/1.yaml": "cluster-init: false\n"}, "", nil,
			func(o Options) bool { return !o.ClusterInit }},
		{"a later list replaces", map[string]string{"config.yaml": "etcd-arg: [a=1, b=2]\n", "config.yaml.d/1.yaml": "etcd-arg: c=3\n"}, "", nil,
			func(o Options) bool { return slices.Equal(o.ETCDArgs, []string{"c=3"}) }},
		{"key+ adds", map[string]string{"config.yaml": "etcd-arg: a=1\n", "config.yaml.d/1.yaml": "etcd-arg+: [b=2]\n"}, "", nil,
			func(o Options) bool { return slices.Equal(o.ETCDArgs, []string{"a=1", "b=2"}) }},
		{"the command line adds to a list", map[string]string{"config.yaml": "etcd-arg: a=1\n"}, "--etcd-arg=b=2", nil,
			func(o Options) bool { return slices.Equal(o.ETCDArgs, []string{"a=1", "b=2"}) }},
		{"an unknown key is skipped", map[string]string{"config.yaml": "flannel-backend: none\nnode-name: a\n"}, "", nil,
			func(o Options) bool { return o.NodeName == "a" && slices.Equal(o.Unknown, []string{"flannel-backend"}) }},
		{"the environment is weaker than a file", map[string]string{"config.yaml": "token: file\n"}, "", map[string]string{"K3S_TOKEN": "env"},
			func(o Options) bool { return o.Token == "file" }},
		{"the environment alone", nil, "", map[string]string{"K3S_TOKEN": "env"},
			func(o Options) bool { return o.Token == "env" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range c.files {
				file := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			args := append([]string{"server", "--config", filepath.Join(dir, "config.yaml"), "--node-ip=10.0.0.1"}, strings.Fields(c.args)...)
			o, err := parse(args, func(name string) string { return c.env[name] })
			if err != nil {
				t.Fatal(err)
			}
			if !c.want(o) {
				t.Errorf("%+v", o)
			}
		})
	}
}

func TestRefusedCommandLines(t *testing.T) {
	for _, c := range []struct{ args, why string }{
		{"", "no command"},
		{"server", "no address: K3s chooses one, the double does not guess"},
		{"server --node-ip=10.0.0.1 --flannel-backend=none", "a flag that it does not keep, asked for by hand"},
		{"server --node-ip=10.0.0.1 --disable-etcd", "an API server needs an etcd somewhere"},
		{"server --node-ip=10.0.0.1 --disable-etcd --disable-apiserver --server=https://s:6443", "nothing to run"},
		{"server --node-ip=10.0.0.1 --etcd-arg=heartbeat-interval", "no value"},
		{"agent --node-ip=10.0.0.1", "an agent needs a server"},
		{"agent --node-ip=10.0.0.1 --server=https://s:6443 --cluster-init", "a server's flag"},
	} {
		if _, err := parse(strings.Fields(c.args), func(string) string { return "" }); err == nil {
			t.Errorf("%q is taken: %s", c.args, c.why)
		}
	}
}
