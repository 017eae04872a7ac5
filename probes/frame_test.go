package probes_test

import (
	"bytes"
	"strings"
	"testing"

	"suffrage/probes"
)

func TestReadFrameRefuses(t *testing.T) {
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
		{"cut off", good[:39], "unexpected EOF"},
		{"cut off in its padding", append(with(7, 2), 0), "unexpected EOF"},
		{"HTTP on the ping protocol", []byte("GET / HTTP/1.1\r\nHost: h1.mesh.example\r\n\r\n")[:40], `begins with "GET "`},
		{"a later version", with(4, 3), "version 3"},
		{"an unknown kind", with(5, 3), "not known"},
		{"too much padding", with(6, 17), "4352 bytes of padding"},
	} {
		if _, err := read(tt.in); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q in it", tt.why, err, tt.want)
		}
	}
}

func read(b []byte) (probes.Frame, error) {
	return probes.ReadFrame(bytes.NewReader(b), make([]byte, probes.FrameSize))
}

func FuzzFrame(f *testing.F) {
	f.Add(probes.Frame{Seq: 1, T1: 2}.Append(nil))
	f.Add(probes.Frame{Answer: true, Seq: 1 << 63, T1: -1, T2: 1 << 62, T3: -1 << 63}.Append(nil))
	f.Add(probes.Frame{Padding: probes.MaxPadding, Seq: 1}.Append(nil))
	f.Add([]byte("SFPN"))
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, err := read(b)
		if err != nil {
			return
		}
		// What the padding is made of is nobody's affair.
		again := fr.Append(nil)
		if len(again) > len(b) || !bytes.Equal(again[:probes.FrameSize], b[:probes.FrameSize]) {
			t.Errorf("%x became %+v became %x", b, fr, again)
		}
	})
}
