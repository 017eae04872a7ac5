package standby

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// k3sRig is a host with K3s as its installer leaves it, both units there, nothing
// started, and everything laid down that Prepare lays down.
func k3sRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.K3s = &K3s{AgentUnit: "k3s-agent.service", DataDir: "/var/lib/rancher/k3s", ConfigDir: "/etc/rancher/k3s/config.yaml.d"}
	r.Unit, r.Datastore = "k3s.service", "/var/lib/rancher/k3s/server/db/etcd"
	r.put(dropInDir+"/k3s.service", "[Service]\nExecStart=/usr/local/bin/k3s server\n")
	r.put(dropInDir+"/k3s-agent.service", "[Service]\nExecStart=/usr/local/bin/k3s agent\n")
	r.k3s("v1.34.2+k3s1")
	r.put("/etc/rancher/k3s/config.yaml", "node-ip: 100.64.0.4\ntoken: secret\n")
	return r
}

func (r *rig) k3s(version string) {
	r.put("/usr/local/bin/k3s", "#!/bin/sh\necho 'k3s version "+version+" (abc)'\n")
	r.must(os.Chmod(r.at("/usr/local/bin/k3s"), 0o755))
}

func TestK3sCheck(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: what K3s has is root's")
	}
	prepared := func(t *testing.T) *rig {
		r := k3sRig(t)
		r.must(os.Mkdir(r.at(r.Data), 0o750))
		r.put(r.Data+"/fence.json", "{}\n")
		for _, d := range r.k3sDirectories() {
			r.must(os.MkdirAll(r.at(d), 0o755))
		}
		for _, s := range r.shipped() {
			r.put(s.path, s.content)
		}
		r.must(r.systemd.Reload(t.Context()))
		for _, u := range []string{agentUnit, "k3s.service", "k3s-agent.service"} {
			r.must(r.systemd.Enable(t.Context(), u, true))
		}
		return r
	}
	if got := prepared(t).amiss(); len(got) > 0 {
		t.Fatalf("a host that lacks nothing: %v", got)
	}
	config := func(text string) func(*rig) {
		return func(r *rig) { r.put("/etc/rancher/k3s/config.yaml", text) }
	}
	command := func(args string) func(*rig) {
		return func(r *rig) {
			r.put(dropInDir+"/k3s.service", "[Service]\nExecStart=/usr/local/bin/k3s "+args+"\n")
			r.must(r.systemd.Reload(t.Context()))
		}
	}
	for _, tt := range []struct {
		why   string
		do    func(r *rig)
		want  string
		state State
		found string
	}{
		{"an old version", func(r *rig) { r.k3s("v1.32.9+k3s1") }, "program ", Wrong, "at least v1.33"},
		{"no K3s", func(r *rig) { r.must(os.Remove(r.at("/usr/local/bin/k3s"))) }, "program ", Missing, "there is no /usr/local/bin/k3s"},
		{"one unit only", func(r *rig) {
			r.must(os.Remove(r.at(dropInDir + "/k3s-agent.service")))
			r.must(r.systemd.Reload(t.Context()))
		}, "unit k3s-agent.service", Missing, "not installed"},
		{"no drop-in", func(r *rig) {
			r.must(os.Remove(r.at(dropInDir + "/k3s.service.d/suffrage.conf")))
			r.must(r.systemd.Reload(t.Context()))
		}, "unit k3s.service", Missing, "is not there"},
		{"no fence: a boot would start the server", func(r *rig) { r.must(os.Remove(r.at(r.Data + "/fence.json"))) }, "fence ", Missing, "must not start"},
		{"K3s never ran here", func(r *rig) { r.must(os.RemoveAll(r.at(r.K3s.DataDir))) }, "directory /var/lib/rancher/k3s/server", Missing, "226/NAMESPACE"},
		{"a stranger where servers join", func(r *rig) {
			r.put("/proc/self/net/tcp", "  sl\n   0: 00000000:192B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0\n")
		}, "port 100.64.0.4:6443", Wrong, "another process"},
		{"a directory that root without its powers cannot enter", func(r *rig) {
			r.must(errors.Join(os.Chmod(r.at("/etc/suffrage"), 0o750), os.Chown(r.at("/etc/suffrage"), 4711, 4711)))
		}, "directory /etc/suffrage", Wrong, "cannot read what is in it"},
		{"no node-ip", config("token: x\n"), "k3s ", Missing, "node-ip is not set"},
		{"another node-ip", config("token: x\nnode-ip: [10.0.0.4]\n"), "k3s ", Wrong, "node-ip is 10.0.0.4"},
		{"cluster-init left behind", config("token: x\nnode-ip: 100.64.0.4\ncluster-init: true\n"), "k3s ", Wrong, "cluster-init"},
		{"cluster-init in a drop-in, as YAML 1.1 has it", func(r *rig) { r.put("/etc/rancher/k3s/config.yaml.d/10-x.yml", "cluster-init: yes\n") }, "k3s ", Wrong, "cluster-init is set in /etc/rancher/k3s/config.yaml.d/10-x.yml"},
		{"neither true nor false", config("token: x\nnode-ip: 100.64.0.4\ncluster-init: maybe\n"), "k3s ", Wrong, "want true or false"},
		{"a drop-in behind Suffrage's", func(r *rig) { r.put("/etc/rancher/k3s/config.yaml.d/own.yaml", "server: https://100.64.0.1:6443\n") }, "k3s ", Wrong, "/etc/rancher/k3s/config.yaml.d/own.yaml sets server"},
		{"one that says what Suffrage says", func(r *rig) { r.put("/etc/rancher/k3s/config.yaml.d/99-suffrage.yml", "cluster-init: false\n") }, "k3s ", Wrong, "99-suffrage.yml sets cluster-init"},
		{"no etcd", config("token: x\nnode-ip: 100.64.0.4\ndisable-etcd: on\n"), "k3s ", Wrong, "disable-etcd is set in /etc/rancher/k3s/config.yaml"},
		{"another data directory", config("token: x\nnode-ip: 100.64.0.4\ndata-dir: /data/k3s\n"), "k3s ", Wrong, "its data directory is /data/k3s by /etc/rancher/k3s/config.yaml"},
		{"a data directory that K3s was not told", func(r *rig) { r.K3s.DataDir = "/data/k3s" }, "k3s ", Wrong, "is /var/lib/rancher/k3s by K3s itself"},
		{"whom to join, on the command line", command("server --server https://100.64.0.1:6443"), "k3s ", Wrong, "--server https://100.64.0.1:6443"},
		{"and the unit says so too", command("server -s=https://100.64.0.1:6443"), "unit k3s.service", Wrong, "--server https://100.64.0.1:6443"},
		{"no etcd, on the command line", command("server --disable-etcd"), "k3s ", Wrong, "--disable-etcd"},
		{"a data directory on the command line", command("server -d /data/k3s"), "k3s ", Wrong, "--data-dir /data/k3s"},
		{"another name", config("token: x\nnode-ip: 100.64.0.4\nnode-name: h9\n"), "k3s ", Wrong, "node-name is h9"},
		{"no token", config("node-ip: 100.64.0.4\n"), "k3s ", Missing, "no token"},
		{"no YAML", config("a: [\n"), "k3s ", Wrong, "config.yaml"},
		{"an external datastore", config("token: x\nnode-ip: 100.64.0.4\ndatastore-endpoint: x\n"), "k3s ", Wrong, "runs no etcd"},
		{"two agents' units", func(r *rig) {
			r.put(dropInDir+"/k3s.service", "[Service]\nExecStart=/usr/local/bin/k3s agent\n")
			r.must(r.systemd.Reload(t.Context()))
		}, "k3s ", Wrong, "does not start a server"},
		{"half of K3s's certificates", func(r *rig) { r.must(os.MkdirAll(r.at("/var/lib/rancher/k3s/server/tls/etcd"), 0o755)) }, "certificates ", Wrong, "client.key"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			r := prepared(t)
			tt.do(r)
			got := r.amiss()
			if c := got[tt.want]; c.State != tt.state || !strings.Contains(c.Found, tt.found) {
				t.Errorf("%+v, want %s of %q; all: %v", c, tt.state, tt.found, got)
			}
		})
	}
	// What is said elsewhere than in config.yaml.
	r := prepared(t)
	r.put("/etc/rancher/k3s/config.yaml", "node-ip: 10.0.0.4\n")
	r.put("/etc/rancher/k3s/config.yaml.d/10-ip.yaml", "node-ip: 100.64.0.4\nserver: https://100.64.0.1:6443\n")
	r.put("/etc/rancher/k3s/config.yaml.d/99-suffrage.yaml", "server: https://100.64.0.2:6443\ncluster-init: false\n")
	r.put("/etc/rancher/k3s/config.yaml.d/local.yaml", "node-label: [a=b]\n")
	r.put("/etc/rancher/k3s/config.yaml.d/20-first.yaml", "cluster-init: true\n")
	command("server --node-ip 100.64.0.9 --data-dir=/var/lib/rancher/k3s/ --flannel-backend none")(r)
	r.put(dropInDir+"/k3s.service.env", "K3S_TOKEN='x'\n")
	if got := r.amiss(); len(got) > 0 {
		t.Errorf("a drop-in counts, and so does the token of the installer: %v", got)
	}
}
