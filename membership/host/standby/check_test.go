package standby

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"suffrage/deploy"
	"suffrage/identity"
)

func builtAs(t *testing.T, path string) string {
	t.Helper()
	b, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return Version(b)
}

// Before anything is laid down each thing that Prepare lays down is missing, and
// nothing else is.
func TestCheckOfABareHost(t *testing.T) {
	r := newRig(t)
	got := r.amiss()
	for _, want := range []string{"directory /var/lib/suffrage", "unit " + agentUnit, "unit " + memberUnit, "unit " + controllerUnit, "orders ", "fence "} {
		if c := got[want]; c.State != Missing || c.Help != prepares {
			t.Errorf("%s: %+v", want, c)
		}
		delete(got, want)
	}
	for what, c := range got {
		t.Errorf("%s: %s", what, c)
	}
}

// laid has everything in place that Prepare lays down.
func laid(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.must(os.Mkdir(r.at(r.Data), 0o750))
	r.put(r.Data+"/fence.json", "{}\n")
	for _, s := range r.shipped() {
		r.put(s.path, s.content)
	}
	r.must(r.systemd.Reload(t.Context()))
	r.must(r.systemd.Enable(t.Context(), agentUnit, true))
	r.must(r.systemd.Enable(t.Context(), memberUnit, true))
	return r
}

const listening = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 04004064:094B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0
   1: 04004064:094C 01004064:D431 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 100 0 0 10 0
`

// Each thing that may be amiss on a host that has everything.
func TestCheck(t *testing.T) {
	if got := laid(t).amiss(); len(got) > 0 {
		t.Fatalf("a host that lacks nothing: %v", got)
	}
	for _, tt := range []struct {
		why   string
		do    func(r *rig)
		want  string // name and subject
		state State
		found string
		lacks bool // the agent tells it too
	}{
		{"settings that do not fit", func(r *rig) { r.Problems = []string{"no such host"} }, "settings ", Wrong, "no such host", false},
		{"a key of another user", func(r *rig) { r.put("/etc/passwd", fmt.Sprintf("suffrage:x:%d:0::/:/\n", os.Getuid()+1)) }, "settings ", Wrong, "cannot read it", false},
		{"no program", func(r *rig) { r.must(os.Remove(r.at(program))) }, "program ", Missing, "there is no /usr", false},
		{"another version", func(r *rig) { r.Software = "v9" }, "program ", Wrong, "this is v9", false},
		{"a program of everybody's", func(r *rig) {
			r.must(os.Remove(r.at(program)))
			r.put(program, "x")
			r.must(os.Chmod(r.at(program), 0o777))
		}, "program ", Wrong, "can be changed by others", false},
		{"no user", func(r *rig) { r.put("/etc/passwd", "root:x:0:0::/:/\n") }, "user ", Missing, "no user suffrage", false},
		{"a directory of everybody's", func(r *rig) { r.must(os.Chmod(r.at(r.Data), 0o777)) }, "directory /var/lib/suffrage", Wrong, "mode 0777", false},
		{"a unit that somebody edited", func(r *rig) { r.put(unitDir+"/"+controllerUnit, "[Unit]\n"); r.must(r.systemd.Reload(t.Context())) }, "unit " + controllerUnit, Wrong, "another than this version ships", false},
		{"a unit that goes before ours", func(r *rig) {
			r.put(dropInDir+"/"+agentUnit, carried(agentUnit))
			r.must(r.systemd.Reload(t.Context()))
		}, "unit " + agentUnit, Wrong, "goes before", false},
		{"not reloaded", func(r *rig) { r.put(dropInDir+"/"+memberUnit+".d/mine.conf", "[Service]\n") }, "unit " + memberUnit, Wrong, "newer than what systemd", true},
		{"not enabled", func(r *rig) { r.must(r.systemd.Enable(t.Context(), memberUnit, false)) }, "unit " + memberUnit, Missing, "not enabled", true},
		{"masked", func(r *rig) { r.must(os.Symlink("/dev/null", r.at(dropInDir+"/"+memberUnit))) }, "unit " + memberUnit, Wrong, "masked", true},
		{"another unit, without the fence", func(r *rig) {
			r.Unit = "own.service"
			r.put(dropInDir+"/own.service", "[Service]\nExecStart=/bin/true\n")
			r.must(r.systemd.Reload(t.Context()))
		}, "unit own.service", Wrong, "does not honour", true},
		{"no orders", func(r *rig) { r.Unit = "" }, "orders ", Missing, "agent.unit is not set", false},
		{"no user namespaces", func(r *rig) { r.put("/proc/sys/user/max_user_namespaces", "0\n") }, "namespaces ", Wrong, "switched off", true},
		{"a kernel without them", func(r *rig) { r.must(os.Remove(r.at("/proc/sys/user/max_user_namespaces"))) }, "namespaces ", Missing, "no user namespaces", true},
		{"no polkit", func(r *rig) { r.must(os.RemoveAll(r.at("/etc/polkit-1"))) }, "orders ", Missing, "polkit is not installed", false},
		{"no fence", func(r *rig) { r.must(os.Remove(r.at(r.Data + "/fence.json"))) }, "fence ", Missing, "must not start", false},
		{"no certificate", func(r *rig) { r.must(os.Remove(r.at("/etc/suffrage/host.crt"))) }, "certificates ", Missing, "host.crt", true},
		{"a certificate for another address", func(r *rig) { r.sign(netip.MustParseAddr("100.64.0.5"), 0) }, "certificates ", Wrong, "certificate-names", true},
		{"a certificate that has ended", func(r *rig) { r.Now = func() time.Time { return time.Now().Add(100 * 365 * 24 * time.Hour) } }, "certificates ", Wrong, "expired", true},
		{"a key that others may read", func(r *rig) { r.must(os.Chmod(r.at("/etc/suffrage/host.key"), 0o644)) }, "certificates ", Wrong, "mode 0644", true},
		{"another authority", func(r *rig) {
			r.must(errors.Join(os.Remove(r.at("/etc/suffrage/ca.key")), os.Remove(r.at("/etc/suffrage/ca.crt"))))
			_, err := identity.NewAuthority(r.at("/etc/suffrage"))
			r.must(err)
		}, "certificates ", Wrong, "not accepted", true},
		{"an old datastore", func(r *rig) { r.put(r.Datastore+"/member/wal/0.wal", "x") }, "datastore ", Wrong, "nothing runs it", false},
		{"a standby's old datastore", func(r *rig) {
			r.put(r.Datastore+"/member/wal/0.wal", "x")
			r.put(r.Data+"/role.json", `{"role":"standby"}`)
		}, "datastore ", Wrong, "instead of joining", false},
		{"a stranger on a port", func(r *rig) { r.put("/proc/self/net/tcp", listening) }, "port 100.64.0.4:2379", Wrong, "another process", true},
		{"a clock that nothing sets", func(r *rig) { r.Synchronised = func() (bool, error) { return false, nil } }, "time ", Missing, "nothing sets", false},
		{"a clock away from both peers", func(r *rig) { r.Report = clocks(3600, 3600) }, "time ", Wrong, "away from h1 +3600000 ms, h2", false},
		{"a clock away from one of two", func(r *rig) { r.Report = clocks(3600, 0.002) }, "time ", Unknown, "cannot be told", false},
		{"no room", func(r *rig) { r.Quota = 1 << 60 }, "disk ", Missing, "twice the quota", false},
		{"no systemd", func(r *rig) { r.systemd.err = errors.New("there is no system bus") }, "unit " + memberUnit, Unknown, "no system bus", true},
	} {
		t.Run(tt.why, func(t *testing.T) {
			r := laid(t)
			tt.do(r)
			got := r.amiss()
			if c := got[tt.want]; c.State != tt.state || !strings.Contains(c.Found, tt.found) {
				t.Errorf("%+v, want %s of %q; all: %v", c, tt.state, tt.found, got)
			}
			lacks := r.Lacks(t.Context())
			if told := strings.Contains(strings.Join(lacks, "\n"), strings.TrimSpace(tt.want)+" is "); told != tt.lacks {
				t.Errorf("its agent tells %q", lacks)
			}
		})
	}
}

// What looks like trouble and is none.
func TestCheckOfAVoter(t *testing.T) {
	r := laid(t)
	r.must(os.Remove(r.at(r.Data + "/fence.json")))
	r.put(r.Datastore+"/member/wal/0.wal", "x")
	r.put("/proc/self/net/tcp", listening)
	r.systemd.running[memberUnit] = true
	r.Report = clocks(0.1, -0.2, 9)
	if got := r.amiss(); len(got) > 0 {
		t.Errorf("a voter that runs: %v", got)
	}
	r = laid(t)
	r.must(os.Remove(r.at(r.Data + "/fence.json")))
	r.Founder = true
	r.put(dropInDir+"/"+memberUnit+".d/mine.conf", "[Service]\nNice=1\n")
	r.must(r.systemd.Reload(t.Context()))
	if got := r.amiss(); len(got) > 0 {
		t.Errorf("one of the first voters, with a drop-in of the owner's: %v", got)
	}
	if all := r.Check(t.Context()); !Ready(all) || Ready(nil) {
		t.Error("nothing amiss is ready, nothing looked at is not")
	}
}

func TestListeners(t *testing.T) {
	const six = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0000000000000000FFFF00000100007F:094B 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0
   1: 00000000000000000000000000000000:192B 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2 1 0
`
	got, err := parseListeners(strings.NewReader(six))
	if err != nil || len(got) != 2 || got[0].at.String() != "127.0.0.1:2379" || got[1].at.String() != "[::]:6443" {
		t.Errorf("%v %v", got, err)
	}
	if !got[1].takes(netip.MustParseAddrPort("100.64.0.4:6443")) || got[0].takes(netip.MustParseAddrPort("100.64.0.4:2379")) {
		t.Error("a wildcard takes every address, another address takes none")
	}
	if _, err := parseListeners(strings.NewReader("x\n 0: zz:1 0 0A 0 0 0 0 0 1\n")); err == nil {
		t.Error("nonsense was read")
	}
}

func FuzzListeners(f *testing.F) {
	f.Add(listening)
	f.Fuzz(func(_ *testing.T, s string) { _, _ = parseListeners(strings.NewReader(s)) })
}

// Where data or the records lie elsewhere, every unit may write and is barred from the
// same things there as in the place that it names.
func TestElsewhere(t *testing.T) {
	for _, tt := range []struct {
		why, data, records string
		want               map[string]string
	}{
		{"where the units have them", shippedData, shippedData + "/decisions", map[string]string{}},
		{"records elsewhere", shippedData, "/srv/records", map[string]string{
			controllerUnit: "\nTemporaryFileSystem=/var/lib/suffrage:ro\nBindPaths=\nBindPaths=/srv/records\n"}},
		{"data elsewhere", "/srv/suffrage", "/srv/suffrage/decisions", map[string]string{
			agentUnit:      "\nReadWritePaths=/srv/suffrage\nInaccessiblePaths=-/srv/suffrage/decisions\n",
			controllerUnit: "\nTemporaryFileSystem=/srv/suffrage:ro\nBindPaths=\nBindPaths=/srv/suffrage/decisions\n",
			memberUnit: "\nAssertPathExists=!/srv/suffrage/fence.json\nRequiresMountsFor=/srv/suffrage\n[Service]\nReadWritePaths=/srv/suffrage\n" +
				"InaccessiblePaths=-/srv/suffrage/agent -/srv/suffrage/decisions -/srv/suffrage/snapshots\n"}},
	} {
		r := newRig(t)
		r.Data, r.Records = tt.data, tt.records
		got := map[string]string{}
		for _, s := range r.shipped() {
			if filepath.Base(s.path) == "suffrage-data.conf" {
				got[s.of] = s.content
			}
		}
		for unit, want := range tt.want {
			if !strings.HasSuffix(got[unit], want) {
				t.Errorf("%s: %s has %q, want %q at its end", tt.why, unit, got[unit], want)
			}
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: drop-ins %q", tt.why, got)
		}
	}
}

// Every file of deploy/systemd is laid down on a host of one flavour or the other,
// but for the socket of the endpoint, which is for some hosts only.
func TestEveryFileIsShipped(t *testing.T) {
	laid := map[string]bool{carried("suffrage-endpoint.socket"): true}
	r := newRig(t)
	for _, s := range r.shipped() {
		laid[s.content] = true
	}
	r.K3s = &K3s{AgentUnit: "k3s-agent.service", DataDir: "/var/lib/rancher/k3s", ConfigDir: "/etc/rancher/k3s/config.yaml.d"}
	for _, s := range r.shipped() {
		laid[s.content] = true
	}
	files := 0
	r.must(fs.WalkDir(deploy.Systemd, "systemd", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		if !laid[carried(strings.TrimPrefix(path, "systemd/"))] {
			t.Errorf("%s is laid down nowhere", path)
		}
		return nil
	}))
	if files < 9 {
		t.Errorf("only %d files", files)
	}
}
