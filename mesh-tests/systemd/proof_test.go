package systemd

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"suffrage/membership"
	"suffrage/membership/host"
)

// TestFenceThatIsNotProven has the unit as it may be found. A fence counts only
// when systemd has loaded that it refuses a start, whatever the files say.
func TestFenceThatIsNotProven(t *testing.T) {
	s := newStandIn(t)
	fence := s.data + "/fence.json"
	const whole, dropIn = "/etc/systemd/system/" + unitName, "/etc/systemd/system/" + unitName + ".d/50-other.conf"
	unit, err := os.ReadFile(s.inside(whole))
	s.must(err)
	without := strings.Replace(string(unit), "AssertPathExists=", "#", 1)
	reload := func() { s.run("systemctl", "daemon-reload") }
	for _, tt := range []struct {
		why   string
		runs  bool
		given func()
		says  string
	}{
		{"an installer wrote the unit anew", true, func() { s.put(whole, without); reload() }, "does not honour the fence"},
		{"S127: the drop-in is written and not loaded", true, func() {
			s.put(whole, without)
			reload()
			s.put(dropIn, "[Unit]\nAssertPathExists=!"+fence+"\n")
		}, "does not honour the fence"},
		{"a condition calls a start that was prevented a success", false, func() { s.put(whole, without+"\n[Unit]\nConditionPathExists=!"+fence+"\n"); reload() }, "does not honour the fence"},
		{"a drop-in takes assertions back", true, func() { s.put(dropIn, "[Unit]\nAssertPathExists=\n"); reload() }, "does not honour the fence"},
		{"it is about another host's data", false, func() { s.put(whole, without+"\n[Unit]\nAssertPathExists=!/var/lib/other/fence.json\n"); reload() }, "does not honour the fence"},
		{"any of several would do", false, func() {
			s.put(whole, without+"\n[Unit]\nAssertPathExists=|!"+fence+"\nAssertPathExists=|/\n")
			reload()
		}, "does not honour the fence"},
		{"it asks for the fence", false, func() { s.put(whole, without+"\n[Unit]\nAssertPathExists="+fence+"\n"); reload() }, "does not honour the fence"},
		{"the next boot brings another unit", true, func() { s.put(whole, string(unit)+"\n# changed\n") }, "systemctl daemon-reload"},
		{"it cannot be read", false, func() { s.put(whole, strings.Replace(string(unit), "ExecStart=", "#", 1)); reload() }, "could not load it"},
		{"it is gone", false, func() { s.must(os.Remove(s.inside(whole))); reload() }, "there is no such unit"},
		{"it is masked", true, func() {
			s.must(os.Rename(s.inside(whole), s.inside("/usr/lib/systemd/system/"+unitName)))
			s.run("systemctl", "mask", "-q", unitName)
		}, "systemctl unmask"},
	} {
		if tt.runs {
			s.must(s.unit.Start(t.Context()))
		}
		tt.given()
		r := s.Order(t.Context(), host.Order{Verb: membership.Fence, Term: 1, Operation: "op"})
		if r.Outcome != host.Failed || r.Code != membership.FenceNotProven || !strings.Contains(r.Reason, tt.says) {
			t.Errorf("%s, running %v: %+v, want %q", tt.why, tt.runs, r, tt.says)
		}
		if f, err := s.Facts(t.Context()); err == nil && (f.Fenced || f.Running != tt.runs) {
			t.Errorf("%s, running %v: %+v", tt.why, tt.runs, f)
		}
		if err := s.unit.Check(t.Context()); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: an agent that starts: %v", tt.why, err)
		}
		s.must(os.Remove(fence))
		if err := s.unit.Start(t.Context()); err == nil || errors.Is(err, host.ErrFenced) {
			t.Errorf("%s: %v: what could not be fenced later is not started", tt.why, err)
		}
		// As it was.
		_, _ = s.try("systemctl", "unmask", "-q", unitName)
		s.must(errors.Join(os.RemoveAll(s.inside(filepath.Dir(dropIn))), os.RemoveAll(s.inside("/usr/lib/systemd/system/"+unitName))))
		s.put(whole, string(unit))
		reload()
		if tt.runs {
			s.must(s.unit.Stop(t.Context()))
		}
	}
	// In a drop-in, loaded, it is as good as in the unit.
	s.put(whole, without)
	s.put(dropIn, "[Unit]\nAssertPathExists=!"+fence+"\n")
	reload()
	s.give(membership.Fence)
	s.reboot()
	s.serve()
	if f := s.facts(); !f.Fenced || f.Running || f.Starts != 0 {
		t.Errorf("fenced by a drop-in: %+v", f)
	}
}

// TestWhatAConditionDoes is why the fence is an assertion.
func TestWhatAConditionDoes(t *testing.T) {
	s := newStandIn(t)
	for i, kind := range []string{"Condition", "Assert"} {
		s.put("/etc/systemd/system/"+unitName, "[Unit]\n"+kind+"PathExists=!"+s.data+"/fence.json\nStartLimitIntervalSec=0\n[Service]\nExecStart=/usr/bin/sleep infinity\nRestart=always\nRestartSec=0\n")
		s.run("systemctl", "daemon-reload")
		s.run("systemctl", "start", unitName)
		s.must(os.WriteFile(s.data+"/fence.json", []byte("{}"), 0o600))
		// Behind what runs, every start is a success.
		s.run("systemctl", "start", unitName)
		before := s.state().Invocation
		s.kill()
		s.settled()
		if n := s.show("NRestarts"); n != strconv.Itoa(i+1) {
			t.Errorf("%s: %s restarts: each time one is tried, and counted, although it is refused", kind, n)
		}
		if got := s.state(); got.Running || got.Invocation != before {
			t.Errorf("%s: %+v: a start that was refused has no invocation", kind, got)
		}
		_, err := s.try("systemctl", "start", unitName)
		if refused := err != nil; refused != (kind == "Assert") {
			t.Errorf("%s: a start by hand: %v", kind, err)
		}
		s.must(os.Remove(s.data + "/fence.json"))
	}
}
