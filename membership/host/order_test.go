package host

import (
	"encoding/json"
	"strings"
	"testing"

	"suffrage/membership"
)

func TestOrdersThatAreNone(t *testing.T) {
	good := `{"verb":"start-member","term":1,"operation":"op-1","member":"ab","peers":{"h4":"https://127.0.0.4:2380"}}`
	if _, err := DecodeOrder([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ why, from, to, want string }{
		{"another key", `"term":1`, `"term":1,"path":"/etc"`, "path"},
		{"more behind it", `"}}`, `"}} {}`, "more after its end"},
		{"a verb that is not known", "start-member", "run", "not a verb"},
		{"a term below 0", `"term":1`, `"term":-1`, "term"},
		{"an operation that could be a path", "op-1", "../x", "operation"},
		{"a member that is no ID", `"ab"`, `"$(id)"`, "hexadecimal"},
		{"no peers", `,"peers":{"h4":"https://127.0.0.4:2380"}`, ``, "no peers"},
		{"a peer that is no URL", "https://127.0.0.4:2380", "127.0.0.4", "https://address:port"},
		{"a peer with a path", "4:2380", "4:2380/x", "https://address:port"},
		{"a name that etcd would split", `"h4"`, `"h4=h5,h6"`, "name"},
		{"peers for a verb without", "start-member", "fence", "no peers"},
		{"too long", "op-1", strings.Repeat("x", MaxOrder), "bytes"},
	} {
		if _, err := DecodeOrder([]byte(strings.Replace(good, tt.from, tt.to, 1))); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.why, err, tt.want)
		}
	}
}

// FuzzOrder: what is accepted is written and read again as the same.
func FuzzOrder(f *testing.F) {
	for _, v := range []membership.Verb{membership.SaveSnapshot, membership.StartMember, membership.Fence, membership.Unfence, membership.Retire} {
		b, err := json.Marshal(order(v, 1, "op", "aa"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"verb":"fence","Verb":"retire","term":18446744073709551615,"operation":"a"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := DecodeOrder(b)
		if err != nil {
			return
		}
		again, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := DecodeOrder(again); err != nil || p.String() != o.String() || len(p.Peers) != len(o.Peers) {
			t.Errorf("%s became %+v, %v", b, p, err)
		}
	})
}
