package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"suffrage/agent"
	"suffrage/endpoint"
	"suffrage/membership/control"
	"suffrage/snapshots"
)

// docs/metrics.md and the code have the same metrics with the same labels: the
// dashboards and the alert rules are checked against the page.
func TestMetricsPageSaysTheSameAsTheCode(t *testing.T) {
	reg := &names{found: map[string]string{}}
	control.NewMetrics(reg, &control.Loop{})
	if _, err := snapshots.NewMetrics(reg); err != nil {
		t.Fatal(err)
	}
	if _, err := endpoint.NewMetrics(reg); err != nil {
		t.Fatal(err)
	}
	for _, d := range agent.Described() {
		reg.take(d)
	}
	if len(reg.found) < 35 {
		t.Fatalf("only %d metrics found: %v", len(reg.found), reg.found)
	}
	// etcd serves the default registry; what a member adds stands in one file.
	member := contentOf(t, "../../member/metrics.go")
	for _, m := range regexp.MustCompile(`"(suffrage_member_\w+)"`).FindAllStringSubmatch(member, -1) {
		reg.found[m[1]] = ""
	}

	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(suffrage_\\w+)` \\|([^|]*)\\|").FindAllStringSubmatch(string(page), -1) {
		described[m[1]] = m[2]
	}
	for _, name := range slices.Sorted(maps.Keys(reg.found)) {
		labels, ok := described[name]
		switch {
		case !ok:
			t.Errorf("docs/metrics.md does not describe %s", name)
		case reg.found[name] != "" && !sameWords(labels, reg.found[name]):
			t.Errorf("docs/metrics.md gives %s the labels %q, the code %q", name, labels, reg.found[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(described)) {
		if _, ok := reg.found[name]; !ok {
			t.Errorf("docs/metrics.md describes %s, which nothing registers", name)
		}
	}
}

func sameWords(a, b string) bool {
	words := func(s string) []string {
		return slices.Sorted(slices.Values(strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })))
	}
	return slices.Equal(words(a), words(b))
}

// names is a registry that only learns what the metrics are called, and their
// labels.
type names struct {
	prometheus.Registerer
	found map[string]string
}

var description = regexp.MustCompile(`fqName: "(\w+)".* variableLabels: \{(.*)\}\}$`)

func (n *names) take(d *prometheus.Desc) {
	if m := description.FindStringSubmatch(d.String()); m != nil {
		n.found[m[1]] = m[2]
	}
}

func (n *names) Register(c prometheus.Collector) error {
	ch := make(chan *prometheus.Desc)
	go func() {
		c.Describe(ch)
		close(ch)
	}()
	for d := range ch {
		n.take(d)
	}
	return nil
}

func (n *names) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		_ = n.Register(c) // it never fails
	}
}
