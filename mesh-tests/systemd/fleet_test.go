package systemd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/agent"
	"suffrage/config"
	"suffrage/fitness"
	"suffrage/identity"
	"suffrage/membership"
	"suffrage/membership/etcd"
	"suffrage/membership/host"
)

// fleet is hosts that were set up as docs/install.md says, with the units of
// deploy/systemd and the real program.
type fleet struct {
	t      *testing.T
	voters []string
	hosts  map[string]*machine
	names  []string
	client *agent.Client
	etcd   *clientv3.Client
}

const (
	memberUnit = "suffrage-member.service"
	agentUnit  = "suffrage-agent.service"
)

// installing are the commands of docs/install.md, step 1, that put files in place.
func installing(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	first, _, _ := strings.Cut(string(page), "\n## 2. ")
	for line := range strings.Lines(first) {
		if strings.HasPrefix(line, "sudo install ") || strings.HasPrefix(line, "sudo useradd ") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	if len(out) < 3 {
		t.Fatalf("docs/install.md has only these commands: %q", out)
	}
	return out
}

// newFleet boots the hosts, the voters first, and runs the voters as one cluster.
// settings are further lines of every host's file, with its own address as ADDRESS; they
// begin in section member.
func newFleet(t *testing.T, voters, standbys []string, settings string) *fleet {
	t.Helper()
	f := bootFleet(t, voters, standbys)
	f.install(settings)
	f.prepare()
	f.create()
	f.connect()
	return f
}

func bootFleet(t *testing.T, voters, standbys []string) *fleet {
	t.Helper()
	f := &fleet{t: t, voters: voters, names: append(slices.Clone(voters), standbys...), hosts: map[string]*machine{}}
	for i, n := range f.names {
		f.hosts[n] = boot(t, n, fmt.Sprintf("%s%d", mesh, i+11))
	}
	return f
}

// prepare has every host lay down what it needs.
func (f *fleet) prepare() {
	f.t.Helper()
	f.each(f.names, func(m *machine) error { _, err := m.try("suffrage", "standby", "prepare"); return err })
}

// each does something on all hosts at once.
func (f *fleet) each(names []string, do func(m *machine) error) {
	f.t.Helper()
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, n := range names {
		all.Go(func() { errs[i] = do(f.hosts[n]) })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			f.t.Fatalf("%s: %v", names[i], err)
		}
	}
}

// as runs suffrage as the user that the services have.
func (m *machine) as(args ...string) (string, error) {
	return m.try(append([]string{"runuser", "-u", "suffrage", "--", "suffrage"}, args...)...)
}

// install follows docs/install.md up to what prepare lays down.
func (f *fleet) install(settings string) {
	f.t.Helper()
	commands := words + "cd " + source + "\n" + strings.Join(installing(f.t), "\n")
	entries := make(map[string]string)
	var mu sync.Mutex
	f.each(f.names, func(m *machine) error {
		if _, err := m.try("bash", "-c", commands); err != nil {
			return err
		}
		entry, err := m.as("identity", "init", "--host", m.name, "--address", m.address)
		mu.Lock()
		entries[m.name] = entry
		mu.Unlock()
		return err
	})
	roster := "hosts:\n"
	for _, n := range f.names {
		roster += entries[n]
	}
	first := f.hosts[f.names[0]]
	first.put("/etc/suffrage/roster.yaml", roster)
	if _, err := first.as("identity", "ca", "init"); err != nil {
		f.t.Fatal(err)
	}
	ca := first.run("cat", "/etc/suffrage/ca.crt")
	for _, n := range f.names {
		m := f.hosts[n]
		m.put("/etc/suffrage/roster.yaml", roster)
		m.put("/etc/suffrage/ca.crt", ca)
		request, err := m.as("identity", "request")
		m.must(err)
		certificate, err := first.feed(request, "runuser", "-u", "suffrage", "--", "suffrage", "identity", "sign", "-")
		m.must(err)
		m.put("/etc/suffrage/host.crt", certificate)
		m.put("/etc/suffrage/suffrage.yaml", f.settings(n)+strings.ReplaceAll(settings, "ADDRESS", m.address))
		_, err = m.as("config", "check")
		m.must(err)
	}
}

func (f *fleet) settings(name string) string {
	var members, endpoints []string
	for _, v := range f.voters {
		members = append(members, fmt.Sprintf("%s: 'https://%s:2380'", v, f.hosts[v].address))
		endpoints = append(endpoints, fmt.Sprintf("https://%s:2379", f.hosts[v].address))
	}
	return "host: " + name + "\netcd:\n  endpoints: [" + strings.Join(endpoints, ", ") + "]\n" +
		"member:\n  initial_cluster: {" + strings.Join(members, ", ") + "}\n"
}

// create makes the cluster, host by host as docs/install.md does, and has the
// units run it.
func (f *fleet) create() {
	f.t.Helper()
	f.each(f.names, func(m *machine) error { _, err := m.try("systemctl", "enable", "-q", "--now", agentUnit); return err })
	for _, v := range f.voters {
		var said string
		eventually(f.t, v+" has its datastore", func() (made bool) { // until all agents answer it is refused
			var err error
			said, err = f.hosts[v].as("cluster", "create", "--confirm", "create "+strings.Join(slices.Sorted(slices.Values(f.voters)), ","))
			return err == nil
		})
		f.t.Log(said)
	}
	f.each(f.voters, func(m *machine) error {
		_, err := m.try("systemctl", "start", memberUnit)
		return err
	})
}

// connect makes us a host of the fleet, with the first one's key.
func (f *fleet) connect() {
	f.t.Helper()
	dir := f.t.TempDir()
	for _, file := range []string{"host.key", "roster.yaml", "ca.crt", "host.crt"} {
		content := f.hosts[f.names[0]].run("cat", "/etc/suffrage/"+file)
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	key, err := identity.LoadKey(filepath.Join(dir, "host.key"))
	if err != nil {
		f.t.Fatal(err)
	}
	roster, err := identity.LoadRoster(filepath.Join(dir, "roster.yaml"))
	if err != nil {
		f.t.Fatal(err)
	}
	f.client = agent.NewClient(key, func() *identity.Roster { return roster })
	f.t.Cleanup(f.client.Close)
	c := etcd.DefaultConfig()
	c.CA, c.Cert, c.Key = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "host.crt"), filepath.Join(dir, "host.key")
	for _, v := range f.voters {
		c.Endpoints = append(c.Endpoints, fmt.Sprintf("https://%s:2379", f.hosts[v].address))
	}
	if err := config.Under("etcd", c.Validate()); err != nil {
		f.t.Fatal(err)
	}
	if f.etcd, err = c.Client(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { f.etcd.Close() })
}

// facts are what the agent tells of its server, nil where it tells nothing.
func (f *fleet) facts(name string) *fitness.ServerFacts {
	ctx, cancel := context.WithTimeout(f.t.Context(), lasting)
	defer cancel()
	r, err := f.client.Pull(ctx, name, 0)
	if err != nil {
		return nil
	}
	return r.Facts.Server
}

// becomes waits for what the agent tells.
func (f *fleet) becomes(name, what string, is func(fitness.ServerFacts) bool) {
	f.t.Helper()
	eventually(f.t, name+": "+what, func() bool {
		s := f.facts(name)
		return s != nil && is(*s)
	})
}

// order gives one over mutual TLS, as the controller does.
func (f *fleet) order(name string, o host.Order) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), lasting)
	defer cancel()
	if err := f.client.Order(ctx, name, o); err != nil {
		f.t.Fatal(err)
	}
}

// learner has etcd list a host, and makes the order that starts it.
func (f *fleet) learner(name, op string, term uint64) host.Order {
	f.t.Helper()
	o := host.Order{Verb: membership.StartMember, Term: term, Operation: op, Peers: map[string]string{}}
	for _, n := range append(slices.Clone(f.voters), name) {
		o.Peers[n] = fmt.Sprintf("https://%s:2380", f.hosts[n].address)
	}
	eventually(f.t, "etcd lists the learner", func() bool {
		ctx, cancel := context.WithTimeout(f.t.Context(), lasting)
		defer cancel()
		r, err := f.etcd.MemberAddAsLearner(ctx, []string{o.Peers[name]})
		if err == nil {
			o.Member = etcd.ID(r.Member.ID)
		}
		return err == nil
	})
	return o
}

// forget has etcd remove a member.
func (f *fleet) forget(member string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), lasting)
	defer cancel()
	list, err := f.etcd.MemberList(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, m := range list.Members {
		if etcd.ID(m.ID) == member {
			if _, err := f.etcd.MemberRemove(ctx, m.ID); err != nil {
				f.t.Fatal(err)
			}
		}
	}
}
