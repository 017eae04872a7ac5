package host

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	godbus "github.com/godbus/dbus/v5"
)

// What systemd itself does is proven on booted hosts, in mesh-tests/systemd.

func TestSystemdUnitNames(t *testing.T) {
	for name, want := range map[string]bool{
		"suffrage-member.service":             true,
		"etcd@h1.service":                     true,
		"":                                    false,
		".service":                            false,
		"etcd":                                false, // systemctl would add the suffix; D-Bus does not
		"etcd.socket":                         false,
		"a/b.service":                         false,
		"-x.service":                          false,
		"a b.service":                         false,
		"a.service\n":                         false,
		strings.Repeat("a", 242) + ".service": false, // systemd's own limit is 255
	} {
		if SystemdUnit.MatchString(name) != want {
			t.Errorf("%.40q: want %v", name, want)
		}
	}
}

func TestAssertionsThatFence(t *testing.T) {
	const path = "/var/lib/suffrage/fence.json"
	for _, tt := range []struct {
		why  string
		a    assertion
		want bool
	}{
		{"nothing starts while it exists", assertion{Kind: "AssertPathExists", Negate: true, Param: path}, true},
		{"systemd tidies paths of conditions only", assertion{Kind: "AssertPathExists", Negate: true, Param: "/var/lib//suffrage/fence.json"}, true},
		{"another path", assertion{Kind: "AssertPathExists", Negate: true, Param: path + "x"}, false},
		{"the other way round", assertion{Kind: "AssertPathExists", Param: path}, false},
		{"one of several", assertion{Kind: "AssertPathExists", Negate: true, Trigger: true, Param: path}, false},
		{"a file that is empty would pass", assertion{Kind: "AssertFileNotEmpty", Negate: true, Param: path}, false},
	} {
		if got := (properties{assertions: []assertion{tt.a}}).asserts(path, false); got != tt.want {
			t.Errorf("%s: got %v", tt.why, got)
		}
	}
}

func TestSystemdThatIsNotThere(t *testing.T) {
	u := Systemd{Name: "suffrage-member.service", Data: t.TempDir(), Bus: "unix:path=" + filepath.Join(t.TempDir(), "none")}
	for what, err := range map[string]error{"check": u.Check(t.Context()), "start": u.Start(t.Context()), "stop": u.Stop(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "suffrage-member.service") || !strings.Contains(err.Error(), "is dbus installed?") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestBusThatIsFrozen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bus")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	u := Systemd{Name: "suffrage-member.service", Data: t.TempDir(), Bus: "unix:path=" + path}
	if _, err := u.State(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v: one that is frozen does not hold the agent", err)
	}
}

func TestHelpNamesWhatLiftsIt(t *testing.T) {
	for name, want := range map[string]string{
		"org.freedesktop.DBus.Error.AccessDenied":                     "suffrage standby prepare",
		"org.freedesktop.DBus.Error.InteractiveAuthorizationRequired": "suffrage standby prepare",
		"org.freedesktop.DBus.Error.ServiceUnknown":                   "systemd is not on this bus",
		"org.freedesktop.DBus.Error.NoReply":                          "",
	} {
		if got := help(godbus.Error{Name: name}); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
