package kube

import (
	"strings"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMarkOf(t *testing.T) {
	set := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	node := func(annotations ...string) meta.PartialObjectMetadata {
		n := meta.PartialObjectMetadata{}
		n.Name, n.Annotations = "h4", map[string]string{}
		for i := 0; i < len(annotations); i += 2 {
			n.Annotations[annotations[i]] = annotations[i+1]
		}
		n.ManagedFields = []meta.ManagedFieldsEntry{
			{Manager: "k3s", Time: &meta.Time{Time: set}, FieldsV1: meta.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:suffrage.io/eligible-reason":{}}}}`)},
			{Manager: "kubectl-annotate", Time: &meta.Time{Time: set}, FieldsV1: meta.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:suffrage.io/eligible":{}}}}`)},
		}
		return n
	}
	for _, c := range []struct {
		why  string
		node meta.PartialObjectMetadata
		word string // of the mark
		says string // who and why
		err  string
	}{
		{"nothing said", node("k3s.io/hostname", "h4"), "unmanaged", "", ""},
		{"may vote, with a reason", node(Eligible, "true", Eligible+"-reason", "wired, SSD"), "eligible", "kubectl-annotate on its Node: wired, SSD", ""},
		{"may not vote", node(Eligible, "false"), "ineligible", "kubectl-annotate on its Node: ", ""},
		{"a reason of many lines is one line", node(Eligible, "true", Eligible+"-reason", "a\nb\x1b[2J"), "eligible", "kubectl-annotate on its Node: a b [2J", ""},
		{"a reason alone says nothing", node(Eligible+"-reason", "wired"), "unmanaged", "", ""},
		{"pinned goes first, and who wrote it is not known", node(Eligible, "true", Pinned, "true"), "pinned", "", ""},
		{"nonsense is not guessed around", node(Pinned, "yes\n"), "", "", `kube: Node h4: annotation suffrage.io/pinned is "yes\n"; true or false`},
		{"nor is a word in other letters", node(Eligible, "True"), "", "", `"True"; true or false`},
		{"nor nothing", node(Eligible, ""), "", "", `""; true or false`},
		{"long nonsense is cut", node(Eligible, strings.Repeat("é", 1000)), "", "", `éé"; true or false`},
	} {
		m, err := markOf(c.node)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %v, want %q", c.why, err, c.err)
		}
		if err != nil {
			continue
		}
		if m.Word() != c.word {
			t.Errorf("%s: %s, want %s", c.why, m.Word(), c.word)
		}
		if c.says != "" && m.Eligible.By+": "+m.Eligible.Reason != c.says {
			t.Errorf("%s: said by %s: %q, want %s", c.why, m.Eligible.By, m.Eligible.Reason, c.says)
		}
		if m.Eligible != nil && m.Eligible.By != "its Node" && !m.Eligible.At.Equal(set) {
			t.Errorf("%s: at %s", c.why, m.Eligible.At)
		}
		if m.Pinned != nil && (m.Pinned.By != "its Node" || !m.Pinned.At.IsZero()) {
			t.Errorf("%s: pinned by %s at %s", c.why, m.Pinned.By, m.Pinned.At)
		}
	}
}
