package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"suffrage/config"
	"suffrage/identity"
)

// The units of deploy/systemd say the same as the code and docs/install.md.
func TestDeployedUnits(t *testing.T) {
	const dir = "../../deploy/systemd/"
	page := contentOf(t, "../../docs/install.md")
	pages := page + contentOf(t, "../../docs/endpoint.md") // whose socket is for some hosts only
	files, err := filepath.Glob(dir + "*.*")
	if err != nil || len(files) != 5 {
		t.Fatalf("%v %v", files, err)
	}
	for _, f := range []string{"sudo suffrage standby prepare", "install -m 0644 deploy/systemd/suffrage-endpoint.socket "} {
		if !strings.Contains(pages, "\n"+f) {
			t.Errorf("no page has %s", f) // that all else is laid down by it, its own tests show
		}
	}
	s := DefaultSettings()
	for unit, line := range map[string]string{"k3s": "AssertPathExists=!", "k3s-agent": "AssertPathExists="} {
		if text := contentOf(t, dir+"k3s/"+unit+".service.d/suffrage.conf"); !strings.Contains(text, "\n"+line+s.Data+"/fence.json\n") {
			t.Errorf("the drop-in of %s has no line %s", unit, line)
		}
	}
	member := contentOf(t, dir+"suffrage-member.service")
	for _, line := range []string{
		"AssertPathExists=!" + s.Data + "/fence.json",
		"RequiresMountsFor=" + s.Data,
		fmt.Sprintf("RestartPreventExitStatus=%d", exitFenced),
	} {
		if !strings.Contains(member, "\n"+line+"\n") {
			t.Errorf("the member's unit has no line %s", line)
		}
	}
	for _, line := range []string{"AssertPathExists=!" + s.Data + "/fence.json", "  unit: suffrage-member.service"} {
		if !strings.Contains(page, line) {
			t.Errorf("docs/install.md does not say %s", line)
		}
	}

	// Most of the sandbox is the same for all three, and equal.
	box := func(name string) (own, all string) {
		_, after, found := strings.Cut(contentOf(t, dir+name), "# What it may touch, and nothing more")
		own, all, same := strings.Cut(after, "# The same for all three.\n")
		if !found || !same {
			t.Errorf("%s says nothing of what it may touch", name)
		}
		return own, all
	}
	own, want := box("suffrage-member.service")
	if line := "StateDirectory=" + filepath.Base(s.Data); !strings.Contains(own, "\n"+line+"\n") {
		t.Errorf("the member's unit has no line %s", line)
	}
	for _, dir := range []string{"agent", "snapshots"} {
		if path := filepath.Join(s.Data, dir); !strings.Contains(own, " -"+path) && !strings.Contains(own, "=-"+path) {
			t.Errorf("the member's unit does not bar it from %s", path)
		}
	}
	if own, _ := box("suffrage-controller.service"); !strings.Contains(own, "\nBindPaths="+s.records()+"\n") {
		t.Errorf("the controller's unit does not let it write in %s", s.records())
	}
	for _, name := range []string{"suffrage-agent.service", "suffrage-controller.service"} {
		if _, all := box(name); all != want {
			t.Errorf("%s has another sandbox than the member's unit", name)
		}
		command := "\nExecStart=/usr/local/bin/suffrage " + strings.TrimSuffix(strings.TrimPrefix(name, "suffrage-"), ".service") + "\n"
		if !strings.Contains(contentOf(t, dir+name), command) {
			t.Errorf("%s does not run%s", name, command)
		}
	}

	rules := contentOf(t, dir+"suffrage.rules")
	for _, has := range []string{`subject.user == "suffrage"`, `action.lookup("unit") == "suffrage-member.service"`, `["start", "stop", "ref"]`} {
		if !strings.Contains(rules, has) {
			t.Errorf("suffrage.rules has no %s", has)
		}
	}
	if !slices.Contains(strings.Split(want, "\n"), "User=suffrage") {
		t.Error("the units run as another user than suffrage.rules knows")
	}
}

// kubectl apply -k makes all that is there.
func TestDeployedManifests(t *testing.T) {
	const dir = "../../deploy/kubernetes/"
	files, err := filepath.Glob(dir + "*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%v %v", files, err)
	}
	kustomization := contentOf(t, dir+"kustomization.yaml")
	for _, f := range files {
		if name := filepath.Base(f); name != "kustomization.yaml" && !strings.Contains(kustomization, "\n  - "+name+"\n") {
			t.Errorf("kustomization.yaml leaves out %s", name)
		}
		if s := DefaultSettings(); !strings.Contains(contentOf(t, f), s.Kubernetes.Namespace) {
			t.Errorf("%s has another namespace than the settings", f)
		}
	}
}

func contentOf(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The example's files are read as a host would, and say the same of the hosts.
func TestDeployedExample(t *testing.T) {
	const dir = "../../deploy/examples/three-plus-two/"
	roster, err := identity.LoadRoster(dir + "roster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := DefaultSettings()
	if err := config.Load(dir+"suffrage.yaml", &s); err != nil {
		t.Fatal(err)
	}
	s.fill()
	if err := errors.Join(s.Validate(), s.Etcd.Validate()); err != nil {
		t.Error(err)
	}
	if len(s.Member.InitialCluster) != s.Controller.Target || roster.Len() != 5 || len(s.Etcd.Endpoints) != 5 {
		t.Errorf("%d voters of %d, %d hosts, %d endpoints", len(s.Member.InitialCluster), s.Controller.Target, roster.Len(), len(s.Etcd.Endpoints))
	}
	readme := contentOf(t, dir+"README.md")
	for _, said := range []string{"suffrage identity datastore", "https://" + s.Endpoint.Listen} {
		if s.Endpoint.Listen == "" || !strings.Contains(readme, said) {
			t.Errorf("API servers keep their objects in this etcd, endpoint.listen is %q, and README.md does not say %s", s.Endpoint.Listen, said)
		}
	}
	for i, h := range roster.Hosts() {
		if want := "https://" + h.Address.String() + ":2379"; s.Etcd.Endpoints[i] != want {
			t.Errorf("endpoint %s, want %s of %s", s.Etcd.Endpoints[i], want, h.Name)
		}
		if peer, votes := s.Member.InitialCluster[h.Name]; votes && peer != "https://"+h.Address.String()+":2380" {
			t.Errorf("peer URL %s of %s at %s", peer, h.Name, h.Address)
		}
	}
}
