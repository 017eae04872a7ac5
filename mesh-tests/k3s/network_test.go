package k3s_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"suffrage/mesh-tests/k3s"
)

// TestNamespaces: with networks of their own hosts listen where K3s's do, on
// 127.0.0.1 too. There is no API server here at all, and two servers that join
// at once are promoted all the same, one after the other.
func TestNamespaces(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("SKIPPED: there is no ip: install iproute2")
	}
	f := &fleet{k3s.Empty(t, k3s.Options{Namespaces: true, Env: k3s.Quick, Config: k3s.QuickETCD + "disable-apiserver: true\n"}), t}
	f.Start(f.Add("h1"))
	f.WaitVoting(f.Host("h1"))
	// One learner at a time: one of them waits. When both ask at the same moment etcd
	// may not answer one of them, which ends after 20 s and is started again.
	for _, name := range []string{"h2", "h3"} {
		h := f.Add(name)
		h.Restart = time.Second
		f.Start(h)
	}
	f.WaitVoting(f.Host("h2"))
	f.WaitVoting(f.Host("h3"))
	f.untilMembers(t, "h1", "h1", "h2", "h3")
	h := f.Host("h2")
	text, err := os.ReadFile(filepath.Join(h.Datastore(), "config"))
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"listen-peer-urls":      "https://127.0.0.1:2380,https://" + h.Address.String() + ":2380",
		"listen-client-urls":    "https://127.0.0.1:2379," + h.ClientURL(),
		"advertise-client-urls": h.ClientURL(),
		"listen-metrics-urls":   "http://127.0.0.1:2381",
	} {
		if c[key] != want {
			t.Errorf("%s is %v, want %s", key, c[key], want)
		}
	}
	for _, port := range []string{"2379", "2380", "2381", "6443"} {
		cmd := append(h.Enter, "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/"+port)
		if out, err := exec.Command(cmd[0], cmd[1:]...).CombinedOutput(); err != nil {
			t.Errorf("nobody listens on 127.0.0.1:%s: %s", port, out)
		}
	}
}
