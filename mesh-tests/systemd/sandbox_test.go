package systemd

import (
	"strings"
	"testing"

	"suffrage/fitness"
	"suffrage/membership/host"
)

const controllerUnit = "suffrage-controller.service"

// TestSandbox enters the sandboxes of the three processes as they run, as their user,
// and finds there what each needs, and nothing of the others.
func TestSandbox(t *testing.T) {
	f := newFleet(t, []string{"h1"}, nil, "agent:\n  unit: "+memberUnit+"\n  period: 200ms\n  ping_timeout: 2s\n")
	m := f.hosts["h1"]
	f.becomes("h1", "it votes", func(s fitness.ServerFacts) bool { return s.Role == host.Voter && s.Running })
	m.run("systemctl", "enable", "-q", "--now", controllerUnit)
	if said, err := m.as("snapshot", "save"); err != nil {
		t.Fatalf("%s %v", said, err)
	}
	const data = "/var/lib/suffrage/"
	// What is barred is there: otherwise nothing would be shown.
	eventually(t, "each has written what is its own", func() bool {
		_, err := m.try("sh", "-c", "ls "+data+"etcd/member/wal/* "+data+"snapshots/* "+data+"decisions/* && test -d "+data+"agent")
		return err == nil
	})
	pid := map[string]string{}
	for _, unit := range []string{agentUnit, controllerUnit, memberUnit} {
		pid[unit] = strings.TrimSpace(m.run("systemctl", "show", "-P", "MainPID", unit))
		m.run("ls", "/proc/"+pid[unit]+"/root"+data) // so that it is there for those who may
	}
	id := func(what string) string { return strings.TrimSpace(m.run("id", what, "suffrage")) }
	uid, gid := id("-u"), id("-g")
	inside := func(unit, command string) error {
		args := []string{"nsenter", "--target", pid[unit], "--mount", "--setuid", uid, "--setgid", gid}
		if unit != agentUnit { // whose users are the host's
			args = append(args, "--user")
		}
		_, err := m.try(append(args, "--", "sh", "-c", command)...)
		return err
	}
	write := func(path string) string { return "f=" + path + "tried; echo x >$f && rm $f" }
	for _, tt := range []struct {
		unit, command string
		may           bool
	}{
		{controllerUnit, "cat /etc/suffrage/host.key", true},
		{controllerUnit, write(data + "decisions/"), true},
		{controllerUnit, write(data), false}, // the fence is a file there
		{controllerUnit, "ls " + data + "etcd", false},
		{controllerUnit, "ls " + data + "snapshots", false},
		{controllerUnit, "ls /proc/" + pid[memberUnit] + "/root" + data, false},
		{controllerUnit, "ls /proc/" + pid[agentUnit] + "/root" + data, false},
		{controllerUnit, write("/etc/suffrage/"), false},

		{memberUnit, "cat /etc/suffrage/host.key", true},
		{memberUnit, write(data + "etcd/"), true},
		{memberUnit, write(data), true}, // its fence, once it was removed
		{memberUnit, "ls " + data + "snapshots", false},
		{memberUnit, "ls " + data + "decisions", false},
		{memberUnit, "ls " + data + "agent", false},
		{memberUnit, "ls /proc/" + pid[agentUnit] + "/root" + data, false},
		{memberUnit, write("/etc/suffrage/"), false},

		{agentUnit, "cat /etc/suffrage/host.key", true},
		{agentUnit, write(data), true},
		{agentUnit, write(data + "etcd/"), true}, // it moves it aside
		{agentUnit, write(data + "snapshots/"), true},
		{agentUnit, "ls " + data + "decisions", false},
		{agentUnit, "ls /proc/" + pid[controllerUnit] + "/root" + data, false},
		{agentUnit, write("/etc/suffrage/"), false},
	} {
		if err := inside(tt.unit, tt.command); (err == nil) != tt.may {
			t.Errorf("%s may (%v, wanted %v): %s: %v", tt.unit, err == nil, tt.may, tt.command, err)
		}
	}
	for _, unit := range []string{controllerUnit, memberUnit} {
		if got := m.run("systemctl", "show", "-P", "RestrictAddressFamilies", unit); strings.Contains(got, "AF_UNIX") {
			t.Errorf("%s may ask systemd: %s", unit, got)
		}
	}
	f.measures("h1")
}
