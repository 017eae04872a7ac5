package standby

import (
	"os"
	"strings"
	"testing"
	"time"
)

// What K3s calls itself is asked once for each program that lies there.
func TestK3sVersion(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: what K3s has is root's")
	}
	r := k3sRig(t)
	program, asked := r.at("/usr/local/bin/k3s"), r.at("/usr/local/bin/asked")
	says := func(version string, at time.Time) {
		r.put("/usr/local/bin/k3s", "#!/bin/sh\necho x >> "+asked+"\necho 'k3s version "+version+" (abc)'\n")
		r.must(os.Chmod(program, 0o755))
		r.must(os.Chtimes(program, at, at))
	}
	version := r.K3sVersion()
	is := func(want string, times int) {
		t.Helper()
		got, err := version(t.Context())
		if err != nil || got != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
		if text, _ := os.ReadFile(asked); strings.Count(string(text), "x") != times {
			t.Errorf("it was asked %d times, want %d", strings.Count(string(text), "x"), times)
		}
	}
	installed := time.Unix(1_700_000_000, 0)
	says("v1.34.2+k3s1", installed)
	is("v1.34.2+k3s1", 1)
	is("v1.34.2+k3s1", 1)
	says("v1.35.0+k3s1", installed.Add(time.Hour)) // as long as the one before
	is("v1.35.0+k3s1", 2)
	for _, tc := range []struct {
		why, want string
		do        func()
	}{
		{"others could change what is run", "can be changed by others", func() { r.must(os.Chmod(program, 0o777)) }},
		{"it is none", "no K3s 1.x", func() { says("", installed.Add(2*time.Hour)) }},
		{"it is gone", "no such file", func() { r.must(os.Remove(program)) }},
		{"no unit names it", "no unit", func() {
			r.must(os.Remove(r.at(dropInDir + "/k3s.service")))
			r.must(r.systemd.Reload(t.Context()))
		}},
	} {
		tc.do()
		if got, err := version(t.Context()); got != "" || err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %q, %v; want %q in the error", tc.why, got, err, tc.want)
		}
	}
}
