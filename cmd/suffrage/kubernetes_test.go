package main

import (
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	events "k8s.io/api/events/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"suffrage/config"
	leaseetcd "suffrage/lease/etcd"
	"suffrage/lease/kubernetes"
	"suffrage/membership"
	"suffrage/membership/kube"
	"suffrage/mesh-tests/kubetest"
)

// TestKubernetesSwap moves a fleet's Lease to Kubernetes as an owner would, with
// the rules of deploy/kubernetes, and swaps under it. The API server is over the
// fleet's own etcd. It is stopped in the middle of the swap, and started again.
// The Nodes tell all of it.
func TestKubernetesSwap(t *testing.T) {
	if os.Getenv(kubetest.Variable) == "" {
		t.Skip("SKIPPED: make kube-test runs it")
	}
	t.Parallel() // both wait most of their time
	f := &ownersFleet{t: t, program: plainBinary(t), dir: filepath.Join(t.TempDir(), "fleet")}
	f.start("--slow", "h3=0s", "--mode", "active", "--until", "stopped")
	s := f.settings("h1")
	near, err := url.Parse(s.Etcd.Endpoints[0])
	if err != nil {
		t.Fatal(err)
	}
	user := "system:serviceaccount:" + s.Kubernetes.Namespace + ":suffrage"
	server := kubetest.Over(t, netip.MustParseAddr(near.Hostname()), kubetest.Below{
		Endpoints: s.Etcd.Endpoints, CA: s.Etcd.CA, Cert: s.Etcd.Cert, Key: s.Etcd.Key,
	}, user)
	server.Apply(t, "../../deploy/kubernetes/namespace.yaml")
	server.Apply(t, "../../deploy/kubernetes/rbac.yaml")
	server.Apply(t, "../../deploy/kubernetes/nodes.yaml")
	for _, h := range []string{"h2", "h5"} {
		server.Create(t, "/api/v1/nodes", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"`+h+`"}}`)
	}
	f.leaseIn(server.Kubeconfig(t, user))

	f.until("a controller leads, with the Lease in Kubernetes", "h1", func(s Status) bool { return s.Controller != nil })
	// Until then the controllers from before may have taken the other one.
	before, err := leaseetcd.New(f.client()).Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	// What a Node says counts beside the marks in etcd, by which all five may vote.
	word := func() string {
		marks := run1[[]HostMark](f, "h1", "host", "list")
		return marks[slices.IndexFunc(marks, func(m HostMark) bool { return m.Host == "h4" })].Word
	}
	server.Create(t, "/api/v1/nodes", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"h4","annotations":{"suffrage.io/eligible":"false"}}}`)
	if got := word(); got != "ineligible" {
		t.Errorf("h4 is %s, its Node says not eligible", got)
	}
	server.Patch(t, "/api/v1/nodes/h4", `{"metadata":{"annotations":{"suffrage.io/eligible":null}}}`)
	if got := word(); got != "eligible" {
		t.Errorf("h4 is %s, and its Node says nothing any more", got)
	}

	judge := f.watchWrites()
	r := f.swappedUnder(server)
	judge()
	if r.Outcome != membership.Completed && r.Outcome != membership.Undone { // undone on a machine that is busy elsewhere
		t.Errorf("%s → %s: %s, %s", r.Out, r.In, r.Outcome, r.TurnedBack)
	}
	if swapped := slices.Contains(r.MembersAfter, r.InMember); len(r.MembersAfter) != 3 || swapped != (r.Outcome == membership.Completed) {
		t.Errorf("%s: members %v before, %v after: %s out, %s in", r.Outcome, r.MembersBefore, r.MembersAfter, r.OutMember, r.InMember)
	}
	t.Logf("%s → %s: %s %s", r.Out, r.In, r.Outcome, r.TurnedBack)
	f.onNodes(server, r)

	st, err := kubernetes.New(server.Config(kubetest.Admin), s.Kubernetes.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	after, err := st.Get(t.Context())
	if err != nil || after.Record.Term <= before.Record.Term {
		t.Errorf("Kubernetes has %+v (%v), want a term above %d", after.Record, err, before.Record.Term)
	}
	if now, err := leaseetcd.New(f.client()).Get(t.Context()); err != nil || now.Version != before.Version {
		t.Errorf("the Lease in etcd was written too: %+v (%v)", now.Record, err)
	}

	// Without the API server a controller leads all the same, and everybody is told
	// why nothing is done.
	server.Stop()
	f.until("a status that says what is away", "h1", func(s Status) bool {
		return s.Controller != nil && s.Leader != "" && slices.ContainsFunc(s.Decision.Refusals, func(r membership.Refusal) bool {
			return r.Code == membership.MembershipUnknown && strings.Contains(r.Detail, "read Nodes at https://")
		})
	})
}

// settings are those of a host.
func (f *ownersFleet) settings(host string) Settings {
	f.t.Helper()
	s := DefaultSettings()
	if err := config.Load(filepath.Join(f.dir, host, "suffrage.yaml"), &s); err != nil {
		f.t.Fatal(err)
	}
	return s
}

// leaseIn moves the Lease: every host's settings are changed, then the
// controllers are started again.
func (f *ownersFleet) leaseIn(kubeconfig string) {
	f.t.Helper()
	files, err := filepath.Glob(filepath.Join(f.dir, "h*", "suffrage.yaml"))
	if err != nil || len(files) != 5 {
		f.t.Fatal(files, err)
	}
	for _, file := range files {
		text := contentOf(f.t, file)
		changed := strings.Replace(text, "lease_store: etcd", "lease_store: kubernetes", 1)
		changed = strings.Replace(changed, `kubeconfig: ""`, "kubeconfig: "+kubeconfig, 1)
		if len(changed) != len(text)+len("kubernetes")-len("etcd")+len(kubeconfig)-len(`""`) {
			f.t.Fatalf("%s has other settings:\n%s", file, text)
		}
		if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	for _, h := range []string{"h1", "h2", "h3", "h4", "h5"} {
		if f.process("controller", h) != 0 {
			f.kill("controller", h, syscall.SIGTERM)
		}
	}
}

// swappedUnder swaps h2 for h5, and restarts the API server once the newcomer is
// a member.
func (f *ownersFleet) swappedUnder(server *kubetest.Server) (r OperationRecord) {
	f.t.Helper()
	answered := make(chan string, 1)
	go func() {
		for until := time.Now().Add(3 * time.Minute); ; {
			said, code := f.run("h1", "swap", "h2", "h5", "--yes", "-o", "json", "--by", "anna")
			// It is refused until every window is full.
			if code == exitOK || f.t.Context().Err() != nil || time.Now().After(until) || !strings.Contains(said, "nothing was asked for") {
				answered <- said
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
	}()
	f.wait("a member process on h5, or the last refusal", func() bool { return len(answered) > 0 || f.process("member", "h5") != 0 })
	if len(answered) > 0 {
		said := <-answered
		if strings.Contains(said, "nothing was asked for") {
			f.t.Skip("SKIPPED: the machine is too busy for a fleet that is fit: ", said)
		}
		answered <- said
	}
	server.Stop()
	server.Start()
	server.WaitReady()
	said := <-answered
	ops := run1[[]OperationRecord](f, "h1", "operations", "list")
	if len(ops) != 1 {
		f.t.Fatalf("%d operations, and the swap said: %s", len(ops), said)
	}
	return ops[0]
}

// onNodes waits until the Nodes say what became of the operation, each step of it.
func (f *ownersFleet) onNodes(server *kubetest.Server, r OperationRecord) {
	f.t.Helper()
	role := map[bool]string{true: "voter", false: "standby"}
	for host, votes := range map[string]bool{r.Out: r.Outcome != membership.Completed, r.In: r.Outcome == membership.Completed} {
		f.wait("Node "+host+" that tells the end", func() bool {
			var node meta.PartialObjectMetadata
			var told events.EventList
			if err := errors.Join(json.Unmarshal(server.Get(f.t, "/api/v1/nodes/"+host), &node),
				json.Unmarshal(server.Get(f.t, "/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.name%3D"+host), &told)); err != nil {
				f.t.Fatal(err)
			}
			has := func(reason, note string) bool {
				return slices.ContainsFunc(told.Items, func(e events.Event) bool { return e.Reason == reason && strings.Contains(e.Note, note) })
			}
			for _, s := range r.Steps {
				if !has(kube.StepBegun, ": "+s.Name+" (") {
					return false
				}
			}
			said := node.Annotations[kube.Role]
			return has(kube.OperationEnded, string(r.Outcome)) && node.Annotations[kube.Operation] == "" &&
				(said == role[votes] || votes && said == "leader")
		})
	}
}
