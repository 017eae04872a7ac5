package host

import (
	"path/filepath"
	"strings"
	"testing"
)

// What K3s's command line must not say, since it goes before every file.
func TestCommandLine(t *testing.T) {
	u := Systemd{Name: "k3s.service", K3s: true, DataDir: "/var/lib/rancher/k3s", Config: "/etc/rancher/k3s/config.yaml.d"}
	for args, want := range map[string]string{
		"k3s server": "",
		"k3s server --node-ip 10.0.0.1 --node-name=h1":      "",
		"k3s server --cluster-init=false":                   "",
		"k3s server --data-dir /var/lib/rancher/k3s/":       "",
		"k3s server --config /etc/rancher/k3s/config.yaml":  "",
		"k3s server --disable-apiserver":                    "", // the owner's own grade
		"k3s server --cluster-init":                         "--cluster-init, which would make a new cluster",
		"k3s server --cluster-init=1":                       "--cluster-init, which would make a new cluster",
		"k3s server --cluster-init=maybe":                   "--cluster-init=maybe",
		"k3s server --server https://h1:6443":               "--server https://h1:6443",
		"k3s server --server=https://h1:6443 --node-ip=a":   "--server https://h1:6443",
		"k3s server -s https://h1:6443":                     "--server https://h1:6443",
		"k3s server --server=":                              "--server ",
		"k3s server --disable-etcd":                         "--disable-etcd",
		"k3s server -d /data":                               "--data-dir /data",
		"k3s server --config=/etc/k3s.yaml":                 "--config /etc/k3s.yaml",
		"k3s server --etcd-arg heartbeat-interval=1 -s=a":   "--server a",
		"k3s --debug server --token-file /t --cluster-init": "--cluster-init",
	} {
		err := u.Takes(strings.Fields(args))
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "daemon-reload")) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	// A fence that holds is proven whatever the command line says; a start is not made.
	const fence = "/var/lib/suffrage/fence.json"
	u.Data = filepath.Dir(fence)
	p := properties{loaded: "loaded", assertions: []assertion{{Kind: "AssertPathExists", Negate: true, Param: fence}},
		starts: []execStart{{Args: []string{"k3s", "server", "--server", "https://h1:6443"}}}}
	if u.honours(p) != nil || u.safe(p) == nil {
		t.Errorf("honours %v, safe %v", u.honours(p), u.safe(p))
	}
}
