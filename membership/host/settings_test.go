package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSettings(t *testing.T) {
	for _, tt := range []struct {
		why   string
		files map[string]string
		args  string
		want  string // flag: values, of those asked for
	}{
		{"nothing", nil, "", ""},
		{"a drop-in goes before the file, the last by name before all",
			map[string]string{"config.yaml": "server: a", "config.yaml.d/10.yaml": "server: b", "config.yaml.d/9.yml": "server: c"}, "", "server=c(9.yml)"},
		{"capitals come first, and count as an ending", map[string]string{"config.yaml.d/Z.YML": "server: a", "config.yaml.d/a.yaml": "server: b"}, "", "server=b(a.yaml)"},
		{"no drop-ins", map[string]string{"config.yaml.d/a.txt": "server: a", "config.yaml.d/b.yaml/c.yaml": "server: b"}, "", ""},
		{"a later list takes an earlier one's place", map[string]string{"config.yaml": "node-ip: [a, b]", "config.yaml.d/1.yaml": "node-ip: c"}, "", "node-ip=c(1.yaml)"},
		{"or adds to it", map[string]string{"config.yaml": "node-ip: a", "config.yaml.d/1.yaml": "node-ip+: [b]"}, "", "node-ip=a(config.yaml) b(1.yaml)"},
		{"a short name", map[string]string{"config.yaml": "s: a"}, "", "server=a(config.yaml)"},
		{"a number", map[string]string{"config.yaml": "token: 123456789"}, "", "token=123456789(config.yaml)"},
		{"no value", map[string]string{"config.yaml": "server:"}, "", "server=(config.yaml)"},
		{"the command line comes last", map[string]string{"config.yaml": "server: a\nnode-ip: b"}, "k3s server -s c --node-ip=d", "node-ip=b(config.yaml) d server=a(config.yaml) c"},
		{"a switch takes no word behind it", nil, "k3s server --disable-etcd --cluster-init=false -data-dir x -t", "cluster-init=false data-dir=x disable-etcd=true token=true"},
		{"before the command's name is what runs it", nil, "/bin/sh -c k3s server", ""},
	} {
		dir := t.TempDir()
		for name, text := range tt.files {
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := ReadSettings(filepath.Join(dir, "config.yaml.d"))
		if err != nil {
			t.Errorf("%s: %v", tt.why, err)
		}
		s.Add(strings.Fields(tt.args))
		var got []string
		for _, flag := range []string{"cluster-init", "data-dir", "disable-etcd", "node-ip", "server", "token"} {
			for i, v := range s[flag] {
				said := v.Value
				if i == 0 {
					said = flag + "=" + said
				}
				if v.From != CommandLine {
					said += fmt.Sprintf("(%s)", filepath.Base(v.From))
				}
				got = append(got, said)
			}
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s:\n%s", tt.why, diff)
		}
	}
}
