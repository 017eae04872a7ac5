package systemd

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/membership/etcd"
	"suffrage/membership/host"
)

// swapSettings make windows of ten seconds and a soak of three, with K3s's timing
// of etcd. Four hosts share one disk here, so its limits are the demo's.
const swapSettings = `  heartbeat: 500ms
  election_timeout: 5s
agent:
  unit: ` + memberUnit + `
  period: 100ms
  ping_timeout: 2s
controller:
  mode: active
  round: 1s
  soak: 3s
  session_ttl: 20s
  limits: {election_timeout: 5s, wal_fsync: 200ms, backend_commit: 500ms, storage_quota: 268435456, memory_used_max: 1}
`

// swapPatience is for the answer "not now": the hosts may be slow for a while,
// since all of them share this machine.
const swapPatience = 4 * time.Minute

// TestSwap is `suffrage swap` on four booted hosts: every process is a unit of
// deploy/systemd, and every host is changed by its own agent.
func TestSwap(t *testing.T) {
	f := newFleet(t, []string{"h1", "h2", "h3"}, []string{"h4"}, swapSettings)
	f.each(f.names, func(m *machine) error {
		_, err := m.try("systemctl", "enable", "-q", "--now", agentUnit)
		return err
	})
	f.each([]string{"h1", "h2"}, func(m *machine) error {
		_, err := m.try("systemctl", "enable", "-q", "--now", "suffrage-controller.service")
		return err
	})
	h1, h3 := f.hosts["h1"], f.hosts["h3"]
	for _, n := range f.names {
		_, err := h1.as("host", "eligible", n, "--by", "anna")
		h1.must(err)
	}

	var answer string
	for deadline := time.Now().Add(swapPatience); ; time.Sleep(time.Second) {
		var err error
		answer, err = h1.as("swap", "h3", "h4", "--yes", "--by", "anna", "-o", "json")
		if err == nil {
			break
		}
		if !strings.Contains(err.Error(), "nothing was asked for") || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	var r membership.Operation
	if err := json.Unmarshal([]byte(answer), &r); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	if r.Outcome != membership.Completed || r.Out != "h3" || r.In != "h4" {
		t.Fatalf("%s", answer)
	}
	list, err := f.etcd.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var members []string
	for _, m := range list.Members {
		members = append(members, etcd.ID(m.ID))
		if m.IsLearner {
			t.Errorf("%s is a learner", m.Name)
		}
	}
	if len(members) != 3 || slices.Contains(members, r.OutMember) || !slices.Contains(members, r.InMember) {
		t.Errorf("members %v; %s had to go and %s to come", members, r.OutMember, r.InMember)
	}
	atRest := func(s fitness.ServerFacts) bool {
		return s.Role == host.Standby && s.Fenced && !s.Running && s.Starts == 0 && !s.Datastore
	}
	f.becomes("h3", "a standby at rest", atRest)
	h3.reboot()
	f.becomes("h3", "a standby at rest, also after a reboot", atRest)
	f.hosts["h4"].reboot()
	f.becomes("h4", "a voter, also after a reboot", func(s fitness.ServerFacts) bool { return s.Role == host.Voter && s.Running })
	t.Logf("%s in %s", r.ID, answer)
}
