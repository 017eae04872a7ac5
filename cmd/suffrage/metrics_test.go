package main

import (
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"suffrage/membership/control"
	"suffrage/snapshots"
)

// Every metric is in docs/metrics.md, with what to do when it moves. (The
// agent's are compared in its own package, where they have values.)
func TestEveryMetricIsDescribed(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	reg := &names{}
	control.NewMetrics(reg, &control.Loop{})
	if _, err := snapshots.NewMetrics(reg); err != nil {
		t.Fatal(err)
	}
	if len(reg.found) < 15 {
		t.Fatalf("only %d metrics found: %v", len(reg.found), reg.found)
	}
	for _, name := range reg.found {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/metrics.md does not describe %s", name)
		}
	}
}

// names is a registry that only learns what the metrics are called.
type names struct {
	prometheus.Registerer
	found []string
}

func (n *names) Register(c prometheus.Collector) error {
	ch := make(chan *prometheus.Desc)
	go func() {
		c.Describe(ch)
		close(ch)
	}()
	for d := range ch {
		_, rest, _ := strings.Cut(d.String(), `fqName: "`)
		name, _, _ := strings.Cut(rest, `"`)
		n.found = append(n.found, name)
	}
	return nil
}

func (n *names) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		_ = n.Register(c) // it never fails
	}
}
