package probes_test

import (
	"bytes"
	"strings"
	"testing"

	"suffrage/probes"
)

func TestParseFrameRefuses(t *testing.T) {
	good := probes.Frame{Seq: 1, T1: 2}.Append(nil)
	with := func(at int, b byte) []byte {
		c := bytes.Clone(good)
		c[at] = b
		return c
	}
	for _, tt := range []struct {
		why  string
		in   []byte
		want string
	}{
		{"cut off", good[:39], "39 bytes"},
		{"too long", append(bytes.Clone(good), 0), "41 bytes"},
		{"HTTP on the ping protocol", []byte("GET / HTTP/1.1\r\nHost: h1.mesh.example\r\n\r\n")[:40], `begins with "GET "`},
		{"a later version", with(4, 2), "version 2"},
		{"an unknown kind", with(5, 3), "not known"},
		{"reserved bytes in use", with(7, 1), "not known"},
	} {
		if _, err := probes.ParseFrame(tt.in); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q in it", tt.why, err, tt.want)
		}
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(probes.Frame{Seq: 1, T1: 2}.Append(nil))
	f.Add(probes.Frame{Answer: true, Seq: 1 << 63, T1: -1, T2: 1 << 62, T3: -1 << 63}.Append(nil))
	f.Add([]byte("SFPN"))
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, err := probes.ParseFrame(b)
		if err != nil {
			return
		}
		if again := fr.Append(nil); !bytes.Equal(again, b) {
			t.Errorf("%x became %+v became %x", b, fr, again)
		}
	})
}
