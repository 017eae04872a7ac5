package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/kube"
	"suffrage/mesh-tests/kubetest"
)

// kubectlVariable names the program; make kube-test builds it.
const kubectlVariable = "SUFFRAGE_KUBECTL"

// shell runs a script at the top of the repository, with kubectl on its path.
type shell struct {
	t    *testing.T
	bin  string
	envs []string
}

func newShell(t *testing.T, kubeconfig string) *shell {
	t.Helper()
	program := os.Getenv(kubectlVariable)
	if program == "" {
		t.Skip("SKIPPED: make kube-test runs it")
	}
	bin := t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	return &shell{t, bin, []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "KUBECONFIG=" + kubeconfig, "HOME=" + t.TempDir()}}
}

func (s *shell) run(script string) (string, error) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "bash", "-e", "-u", "-o", "pipefail", "-c", script)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), s.envs...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *shell) must(script string) string {
	s.t.Helper()
	out, err := s.run(script)
	if err != nil {
		s.t.Fatalf("%s\n%v: %s", script, err, out)
	}
	return out
}

// TestKubernetesPage runs every command of docs/kubernetes.md, as it stands there,
// against a real API server; and the kubeconfig that comes of it works.
func TestKubernetesPage(t *testing.T) {
	s := kubetest.New(t)
	sh := newShell(t, s.Kubeconfig(t, kubetest.Admin))
	ns := DefaultSettings().Kubernetes.Namespace
	for _, h := range []string{"h1", "h3", "h4"} {
		s.Create(t, "/api/v1/nodes", fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"%s"}}`, h))
	}
	page := contentOf(t, "../../docs/kubernetes.md")
	made := filepath.Join(t.TempDir(), "kubeconfig")
	var nodes *kube.Nodes
	ran := 0
	for i, part := range strings.Split(page, "\n```") {
		language, script, _ := strings.Cut(part, "\n")
		switch {
		case i%2 == 0 || !strings.Contains(script, "kubectl"):
			continue
		case language == "sh": // TestKubernetesPlugin
			if !strings.Contains(script, "/"+pluginFile+" ") || !strings.Contains(script, "/"+completeFile+" ") {
				t.Errorf("the plugin has other names:\n%s", script)
			}
			continue
		case strings.Contains(script, "custom-columns"):
			writeNodes(t, sh, nodes)
			s.Create(t, "/apis/coordination.k8s.io/v1/namespaces/"+ns+"/leases", `{"metadata":{"name":"fleet-regrade"}}`)
		case strings.Contains(script, "create token"):
			install := regexp.MustCompile(`(?m)^sudo install .* /etc/suffrage/kubeconfig .*$`)
			if !install.MatchString(script) || !strings.Contains(script, "https://ADDRESS:6443") {
				t.Fatalf("the kubeconfig is made by other commands:\n%s", script)
			}
			script = install.ReplaceAllLiteralString(script, "mv $f "+made+"; rm api-ca.crt")
			script = strings.Replace(script, "https://ADDRESS:6443", s.Config(kubetest.Admin).Host, 1)
		}
		ran++
		out := sh.must(script)
		switch {
		case strings.Contains(script, "create token"):
			cfg, err := clientcmd.BuildConfigFromFlags("", made)
			if err != nil {
				t.Fatal(err)
			}
			if nodes, err = kube.New(cfg); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(nodes.Close)
		case strings.Contains(script, "annotate"):
			look, err := nodes.Look(t.Context())
			if marks := look.Marks; err != nil || marks["h1"].Word() != "pinned" || marks["h4"].Word() != "eligible" || !strings.HasSuffix(marks["h4"].Eligible.By, "its Node") {
				t.Errorf("what was annotated reads as %v (%v)", look.Marks, err)
			}
		case strings.Contains(script, "custom-columns"):
			for _, want := range []string{
				`NAME +ROLE +VERDICT +DECISION +AS OF`, `h3 +voter +unfit +would swap h3 → h4 \(dry-run\) +20`, `h4 +standby +fit +would swap h3 → h4`,
				`suffrage.io/verdict-reason: rtt to h1`, `Warning +VerdictChanged +\S+ +suffrage.io/controller +unfit: rtt to h1`,
				`default +Warning|Warning +VerdictChanged +node/h3`, `fleet-regrade`,
			} {
				if !regexp.MustCompile(want).MatchString(out) {
					t.Errorf("no %s in:\n%s", want, out)
				}
			}
		}
	}
	if ran != 4 {
		t.Errorf("%d blocks with kubectl, want 4", ran)
	}
	// Words within the text.
	sh.must(`kubectl annotate node h1 suffrage.io/pinned-; kubectl annotate --overwrite node h4 suffrage.io/eligible=false; kubectl get leases -A`)

	// Another namespace is one change, and the server takes what comes of it.
	dir := t.TempDir()
	sh.must(`cp deploy/kubernetes/*.yaml ` + dir + `; sed -i 's/name: suffrage$/name: votes/' ` + dir + `/namespace.yaml`)
	out := sh.must(`kubectl kustomize ` + dir)
	if strings.Contains(out, "namespace: suffrage") || !strings.Contains(out, `"system:serviceaccount:votes:suffrage"`) || strings.Count(out, "namespace: default") != 2 {
		t.Errorf("with namespace votes it builds\n%s", out)
	}
	sh.must(`kubectl apply -k deploy/examples/three-plus-two`)
	if out := sh.must(`kubectl get rolebindings -A -l app.kubernetes.io/part-of=suffrage -o name`); strings.Count(out, "\n") != 2 {
		t.Errorf("the example has the rules %s", out)
	}
	// Commands of the example.
	example := contentOf(t, "../../deploy/examples/three-plus-two/README.md")
	for _, h := range []string{"h2", "h5"} {
		s.Create(t, "/api/v1/nodes", fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"%s"}}`, h))
	}
	for _, command := range regexp.MustCompile(`(?m)^ +(kubectl annotate .*)$`).FindAllStringSubmatch(example, -1) {
		sh.must(strings.Replace(command[1], "annotate", "annotate --overwrite", 1))
	}
	if look, err := nodes.Look(t.Context()); err != nil || look.Marks["h1"].Word() != "pinned" || look.Marks["h5"].Word() != "eligible" {
		t.Errorf("the example's marks are %v (%v)", look.Marks, err)
	}
	// The command of docs/k3s.md: the same rules, and the request on Nodes.
	sh.must(`kubectl apply -k deploy/kubernetes-k3s`)
	sh.must(`kubectl apply -k ` + dir)
	for until := time.Now().Add(kubetest.Patience); ; time.Sleep(100 * time.Millisecond) {
		// The server learns of rules by a watch.
		out, err := sh.run(`kubectl auth can-i patch nodes --as system:serviceaccount:votes:suffrage`)
		if err == nil {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("in namespace votes: %s", out)
		}
	}
}

// writeNodes has a controller write on the Nodes that h3 is slow.
func writeNodes(t *testing.T, sh *shell, nodes *kube.Nodes) {
	t.Helper()
	now := time.Now().UTC()
	in := membership.Inputs{Now: now}
	d := membership.Decision{Kind: membership.Steady, At: now, Since: now, Mode: membership.DryRun}
	for i, h := range []string{"h1", "h3", "h4"} {
		in.View.Hosts = append(in.View.Hosts, membership.Host{Name: h})
		d.Verdicts = append(d.Verdicts, fitness.Verdict{Host: h, Status: fitness.Fit})
		if i < 2 {
			in.View.Members = append(in.View.Members, membership.Member{ID: fmt.Sprint(i + 1), Host: h, Responding: true, Leader: "1"})
		}
	}
	w := kube.NewWriter(nodes, "h1", slog.New(slog.DiscardHandler))
	w.Offer(in, d)
	d.Verdicts = append([]fitness.Verdict{}, d.Verdicts...)
	d.Verdicts[1] = fitness.Verdict{Host: "h3", Status: fitness.Unfit, Reasons: []fitness.Reason{{Signal: fitness.RTT, Peer: "h1", Band: fitness.Over}}}
	d.Kind, d.Plan = membership.Planned, &membership.Plan{Out: "h3", In: "h4", Why: "h3 is slow"}
	w.Offer(in, d)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.Run(ctx)
	}()
	defer func() { cancel(); <-done }()
	for until := time.Now().Add(kubetest.Patience); ; time.Sleep(100 * time.Millisecond) {
		if out := sh.must(`kubectl get events -A`); strings.Contains(out, "VerdictChanged") && strings.Contains(out, "node/h4") {
			return
		}
		if time.Now().After(until) {
			t.Fatal("no Events come")
		}
	}
}

// TestKubernetesPlugin: a real kubectl finds the program by its names.
func TestKubernetesPlugin(t *testing.T) {
	sh := newShell(t, "/dev/null")
	program := plainBinary(t)
	for _, name := range []string{pluginFile, completeFile} {
		if err := os.Symlink(program, filepath.Join(sh.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	if out := sh.must(`kubectl plugin list`); !strings.Contains(out, "/"+pluginFile) {
		t.Errorf("kubectl does not list it: %s", out)
	}
	if out := sh.must(`kubectl suffrage host --help`); !strings.Contains(out, "kubectl suffrage host [command]") {
		t.Errorf("help says %s", out)
	}
	out, err := sh.run(`kubectl suffrage status --config /nowhere/suffrage.yaml`)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitUsage || !strings.HasPrefix(out, "kubectl suffrage: ") || !strings.Contains(out, "/nowhere/suffrage.yaml") {
		t.Errorf("without settings: %v: %s", err, out)
	}
	if out := sh.must(`kubectl __complete suffrage host el`); !strings.Contains(out, "eligible") {
		t.Errorf("completes with %s", out)
	}
}
