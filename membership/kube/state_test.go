package kube

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestState(t *testing.T) {
	for _, c := range []struct{ why, status, ready, voter string }{
		{"a Node that no kubelet has told anything", `{}`, "", ""},
		{"no conditions", `{"conditions":[]}`, "", ""},
		{"others say nothing of Ready", `{"conditions":[{"type":"DiskPressure","status":"True"}]}`, "", ""},
		{"as a kubelet writes it", `{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","lastTransitionTime":"2026-07-01T14:00:00+02:00"}]}`,
			"True (KubeletReady) since 2026-07-01T12:00:00Z", ""},
		{"without a time", `{"conditions":[{"type":"Ready","status":"False","reason":"KubeletNotReady","lastTransitionTime":null}]}`, "False (KubeletNotReady)", ""},
		{"nobody has heard of it", `{"conditions":[{"type":"Ready","status":"Unknown"}]}`, "Unknown", ""},
		{"another word is no yes", `{"conditions":[{"type":"Ready","status":"true"}]}`, "Unknown", ""},
		{"nor is none", `{"conditions":[{"type":"Ready"}]}`, "Unknown", ""},
		{"as K3s writes it", `{"conditions":[{"type":"Ready","status":"True"},{"type":"EtcdIsVoter","status":"False","reason":"MemberIsLearner"}]}`,
			"True", "False (MemberIsLearner)"},
		{"a reason is one line, and not a long one", `{"conditions":[{"type":"Ready","status":"False","reason":"a\nb\u001b` + strings.Repeat("c", 200) + `"}]}`,
			"False (a b " + strings.Repeat("c", maxWord-4) + ")", ""},
	} {
		var w whole
		if err := json.Unmarshal([]byte(`{"metadata":{"name":"h1","annotations":{"a":"b"}},"spec":{"podCIDR":"10.0.0.0/24"},"status":`+c.status+`}`), &w); err != nil {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		n, ready, voter := w.state(), "", ""
		if n.Ready != nil {
			ready = n.Ready.String()
		}
		if n.EtcdIsVoter != nil {
			voter = n.EtcdIsVoter.String()
		}
		if ready != c.ready || voter != c.voter || w.Name != "h1" || w.Annotations["a"] != "b" {
			t.Errorf("%s: Ready %q and EtcdIsVoter %q of %s, want %q and %q", c.why, ready, voter, w.Name, c.ready, c.voter)
		}
	}
}
