package systemd

import (
	"testing"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/host"
)

func (h *k3sHost) regrade(to fitness.Grade) host.Result {
	return h.Order(h.t.Context(), host.Order{Verb: membership.Regrade, Term: 1, Operation: "op", Member: "aa", To: to})
}

// started names the process of the server's unit.
func (h *k3sHost) started() string {
	h.t.Helper()
	s, err := h.unit.State(h.t.Context())
	h.must(err)
	if !s.Running {
		h.t.Error("the server does not run")
	}
	return s.Invocation
}

// A regrade is one restart, told only once the process is the new one; it outlasts a
// boot, and behind a fence nothing is stopped.
func TestK3sRegrade(t *testing.T) {
	h := newK3sHost(t)
	h.run("systemctl", "start", "--no-block", "k3s.service")
	eventually(t, "the server runs", func() bool { return h.runs() == "k3s.service" })
	is := func(when string, want fitness.Grade) {
		t.Helper()
		if f := h.facts(); f.Grade != want || f.Stepped != (want == fitness.EtcdOnly) || f.Role != host.Voter {
			t.Errorf("%s: %+v, want %s", when, f, want)
		}
	}
	is("to begin with", fitness.Full)
	first := h.started()
	if r := h.regrade(fitness.EtcdOnly); r.Outcome != host.Done {
		t.Fatalf("%+v", r)
	}
	is("stepped down", fitness.EtcdOnly)
	second := h.started()
	if r := h.regrade(fitness.EtcdOnly); r.Outcome != host.Done || h.started() != second || second == first {
		t.Errorf("%+v: it was started as %s, %s and %s; want the second and the third to be one", r, first, second, h.started())
	}
	h.reboot()
	h.serveK3s()
	eventually(t, "the server runs after a boot", func() bool { return h.runs() == "k3s.service" })
	is("after a boot", fitness.EtcdOnly)

	h.order(membership.Fence)
	behind := h.started()
	if r := h.regrade(fitness.Full); r.Outcome != host.Refused || h.started() != behind {
		t.Errorf("behind its fence: %+v", r)
	}
	if err := h.unit.StartAgain(t.Context()); err == nil || h.started() != behind {
		t.Errorf("behind its fence it was stopped, which nothing would end: %v", err)
	}
	h.order(membership.Unfence)
	if r := h.regrade(fitness.Full); r.Outcome != host.Done || h.started() == behind {
		t.Errorf("stepped up: %+v", r)
	}
	is("stepped up", fitness.Full)
}
