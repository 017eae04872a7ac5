package kube_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"suffrage/membership/kube"
	"suffrage/mesh-tests/kubetest"
)

// tripper changes what a client sends.
type tripper func(next http.RoundTripper, req *http.Request) (*http.Response, error)

func (f tripper) over(cfg *rest.Config) *rest.Config {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(req *http.Request) (*http.Response, error) { return f(next, req) })
	})
	return cfg
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestWriterInTrouble: whatever the API server does, Offer returns at once, and
// what stands on the Nodes in the end is the newest round.
func TestWriterInTrouble(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t)
	for _, h := range strings.Fields(roster) {
		s.Create(t, nodes, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"`+h+`"}}`)
	}
	now := time.Now().UTC().Truncate(time.Second)
	conflicts := atomic.Int64{}
	stale := tripper(func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodPatch && strings.HasPrefix(req.URL.Path, nodes) && conflicts.Add(1) <= 6 {
			body, err := io.ReadAll(req.Body)
			if err != nil {
				return nil, err
			}
			// Somebody else wrote since: the server itself says Conflict.
			body = bytes.Replace(body, []byte(`"metadata":{`), []byte(`"metadata":{"resourceVersion":"1",`), 1)
			req = req.Clone(req.Context())
			req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		return next.RoundTrip(req)
	})
	n, err := kube.New(stale.over(s.Config(kubetest.Admin)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	w, log, _ := teller(t, n, 20*time.Millisecond)
	in, d := fleetOf(now)
	w.Offer(in, d)
	says(t, s, "h4", map[string]string{kube.Verdict: "fit", kube.Role: "standby"})
	if got := conflicts.Load(); got <= 6 {
		t.Errorf("only %d writes, so no conflict", got)
	}
	until(t, func() error {
		if got := log.String(); !strings.Contains(got, "not told in Kubernetes") || !strings.Contains(got, "told in Kubernetes again") {
			return fmt.Errorf("the log says %s", got)
		}
		return nil
	})

	for i, trouble := range []struct {
		why         string
		begin, over func()
	}{
		{"a frozen API server", func() { s.Signal(syscall.SIGSTOP) }, func() { s.Signal(syscall.SIGCONT) }},
		{"an API server that is down", s.Stop, s.Start},
		{"a frozen etcd", func() { s.Etcd.Members[0].Signal(syscall.SIGSTOP) }, func() { s.Etcd.Members[0].Signal(syscall.SIGCONT) }},
	} {
		before, begun := strings.Count(log.String(), "not told"), now.Add(time.Duration(1+i)*time.Hour)
		trouble.begin()
		for round := range 200 { // ten minutes of rounds, which take no time here
			in, d = fleetOf(begun.Add(time.Duration(round) * 3 * time.Second))
			d.Mode = trouble.why // so that the first of them says something new
			if round%2 == 1 {
				unfit(&d, "h4")
			}
			w.Offer(in, d)
			if round == 0 {
				until(t, func() error {
					if strings.Count(log.String(), "not told") == before {
						return fmt.Errorf("with %s the log says %s", trouble.why, log)
					}
					return nil
				})
			}
		}
		trouble.over()
		s.WaitReady()
		until(t, func() error {
			a := annotations(t, s, "h4")
			if at, err := time.Parse(time.RFC3339, a[kube.AsOf]); err != nil || a[kube.Verdict] != "unfit" || at.Before(begun) {
				return fmt.Errorf("after %s h4 has %v, want unfit as of %s and later", trouble.why, a, begun)
			}
			return nil
		})
	}
	until(t, func() error {
		if got := told(t, s, "h4"); !slices.ContainsFunc(got, func(e string) bool { return strings.HasPrefix(e, "VerdictChanged unfit") }) {
			return fmt.Errorf("Events %q", got)
		}
		return nil
	})
}

// TestCompactedBetweenPages: a list whose second page is too old begins anew.
func TestCompactedBetweenPages(t *testing.T) {
	t.Parallel()
	s := kubetest.New(t)
	for i := range 70 {
		s.Create(t, nodes, fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"h%d","annotations":{"suffrage.io/pinned":"true"}}}`, i+1))
	}
	cl, err := clientv3.New(clientv3.Config{Endpoints: s.Etcd.Endpoints(), DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cl.Close() })
	gone := 0
	compacts := tripper(func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		if gone == 0 && req.URL.Query().Get("continue") != "" {
			r, err := cl.Put(req.Context(), "/elsewhere", "")
			if err == nil {
				_, err = cl.Compact(req.Context(), r.Header.Revision, clientv3.WithCompactPhysical())
			}
			if err != nil {
				return nil, err
			}
			s.Stop() // or it would have the page in memory
			s.Start()
			s.WaitReady()
		}
		resp, err := next.RoundTrip(req)
		if err == nil && resp.StatusCode == http.StatusGone {
			gone++
		}
		return resp, err
	})
	n, err := kube.New(compacts.over(s.Config(kubetest.Admin)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	look, err := n.Look(patient(t))
	if err != nil || len(look.Marks) != 70 {
		t.Errorf("%d marks (%v), want 70", len(look.Marks), err)
	}
	if gone == 0 {
		t.Error("no page was too old, so this proved nothing")
	}
}

// TestWriterRules: deploy/kubernetes is enough for all that a Writer does; with
// one verb less what needs it fails and is named, and the rest goes on.
func TestWriterRules(t *testing.T) {
	t.Parallel()
	const user = "system:serviceaccount:suffrage:suffrage"
	s := kubetest.New(t, user)
	s.Apply(t, "../../deploy/kubernetes/namespace.yaml")
	s.Apply(t, "../../deploy/kubernetes/nodes.yaml")
	made := s.Apply(t, "../../deploy/kubernetes/rbac.yaml")
	n, err := kube.New(s.Config(user))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	now := time.Now().UTC().Truncate(time.Second)

	// try makes the Nodes anew and follows a fleet whose h3 swings; it says what
	// did not work, from the log.
	rounds := 0
	try := func() string {
		for _, h := range strings.Fields(roster) {
			s.Delete(t, nodes+"/"+h)
			s.Create(t, nodes, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"`+h+`"}}`)
		}
		ctx, cancel := context.WithTimeout(t.Context(), kubetest.Patience)
		defer cancel()
		w, log, stop := teller(t, n, 10*time.Millisecond)
		defer stop()
		for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
			rounds++
			in, d := fleetOf(now.Add(time.Duration(rounds) * time.Second))
			if rounds%2 == 0 {
				unfit(&d, "h3")
			}
			w.Offer(in, d)
			counted := slices.ContainsFunc(told(t, s, "h3"), func(e string) bool { return strings.Contains(e, " ×") })
			written := annotations(t, s, "h3")[kube.Verdict] != ""
			if counted && written {
				return ""
			}
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, "forbidden") {
					// What does not need the verb works all the same.
					if strings.Contains(line, "what=events") && !written || strings.Contains(line, "what=annotations") && len(told(t, s, "h3")) == 0 {
						continue
					}
					return line
				}
			}
		}
		return log.String()
	}
	until(t, func() error { return wrong(try(), "") })
	roles := map[string][]rbac.PolicyRule{}
	for path, object := range made {
		var role rbac.ClusterRole // a Role has the same rules
		if err := json.Unmarshal(object, &role); err != nil {
			t.Fatal(err)
		}
		if (role.Kind == "ClusterRole" || role.Kind == "Role") && role.Namespace != "suffrage" {
			roles[path] = role.Rules
		}
	}
	for _, less := range []struct{ verb, resource, says string }{
		{"list", "nodes", "what=Nodes"}, {"patch", "nodes", "what=annotations"},
		{"create", "events", "what=events"}, {"patch", "events", "what=events"},
	} {
		found := false
		for path, rules := range roles {
			for i, rule := range rules {
				if !slices.Contains(rule.Resources, less.resource) || !slices.Contains(rule.Verbs, less.verb) {
					continue
				}
				found = true
				var role map[string]any
				if err := json.Unmarshal(made[path], &role); err != nil {
					t.Fatal(err)
				}
				fewer := slices.Clone(rules)
				fewer[i].Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(v string) bool { return v == less.verb })
				if len(fewer[i].Verbs) == 0 {
					fewer = slices.Delete(fewer, i, i+1)
				}
				put(t, s, path, role, fewer)
				until(t, func() error { return wrong(try(), less.says) })
				put(t, s, path, role, rules)
			}
		}
		if !found {
			t.Errorf("no rule has %s of %s", less.verb, less.resource)
		}
	}
	until(t, func() error { return wrong(try(), "") })
	if count := len(slices.Concat(verbs(roles)...)); count != 4 {
		t.Errorf("%d verbs, want list and patch of Nodes, create and patch of Events", count)
	}
	// Of Nodes only its own annotations.
	for _, c := range []struct {
		why, patch string
		code       int
	}{
		{"its own annotation", `{"metadata":{"annotations":{"suffrage.io/verdict":"fit","suffrage.io/as-of":null}}}`, 200},
		{"the owner's mark", `{"metadata":{"annotations":{"suffrage.io/pinned":"true"}}}`, 422},
		{"another's annotation", `{"metadata":{"annotations":{"etcd.k3s.cattle.io/remove":"true"}}}`, 422},
		{"taking away another's", `{"metadata":{"annotations":{"team":null}}}`, 422},
		{"a label", `{"metadata":{"labels":{"node-role.kubernetes.io/etcd":"true"}}}`, 422},
		{"a taint", `{"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}`, 422},
		{"a cordon", `{"spec":{"unschedulable":true}}`, 422},
		{"a finalizer", `{"metadata":{"finalizers":["a.b/c"]}}`, 422},
	} {
		s.Patch(t, nodes+"/h1", `{"metadata":{"annotations":{"team":"blue","suffrage.io/as-of":"now"}}}`)
		if code, text := s.PatchAs(t, user, nodes+"/h1", c.patch); code != c.code || code != 200 && !strings.Contains(text, "suffrage may") {
			t.Errorf("%s: %d %s, want %d", c.why, code, text, c.code)
		}
	}
	if got := s.As(t, user, "/apis/events.k8s.io/v1/namespaces/default/events"); got != 403 {
		t.Errorf("it may read Events: %d", got)
	}
}

func verbs(roles map[string][]rbac.PolicyRule) (all [][]string) {
	for _, rules := range roles {
		for _, r := range rules {
			all = append(all, r.Verbs)
		}
	}
	return all
}

func put(t *testing.T, s *kubetest.Server, path string, role map[string]any, rules []rbac.PolicyRule) {
	t.Helper()
	role["rules"] = rules
	object, err := json.Marshal(role)
	if err != nil {
		t.Fatal(err)
	}
	s.Put(t, path, string(object))
}

func wrong(got, want string) error {
	if want == "" && got != "" || !strings.Contains(got, want) {
		return fmt.Errorf("%q, want %q", got, want)
	}
	return nil
}
