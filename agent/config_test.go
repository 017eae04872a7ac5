package agent

import (
	"strings"
	"testing"
	"time"

	"suffrage/config"
	"suffrage/fitness"
)

func TestDefaultConfigIsValid(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}

func TestConfigRefuses(t *testing.T) {
	for _, tt := range []struct{ why, yaml, want string }{
		{"faster than a sample can be taken", "period: 9ms", "f.yaml:1: period: found 9ms; allowed: 10ms to 1m0s"},
		{"a window of hours", "period: 2m", "allowed: 10ms to 1m0s"},
		{"a number without a unit", "period: 3", "f.yaml:1: period"},
		{"more pings under way than are kept", "period: 50ms\nping_timeout: 1100ms", "f.yaml:2: ping_timeout: found 1.1s; allowed: 10ms to 1s: at most 20 times agent.period (50ms)"},
		{"a name instead of an address", "listen: h1:7400", "f.yaml:1: listen"},
		{"no port", "metrics: 127.0.0.1", "f.yaml:1: metrics"},
		{"a relative path", "dir: data", "absolute path"},
		{"no URL", "member_metrics: 127.0.0.1:2381", "member_metrics"},
		{"a zone with a line end", `zone: "a\nb"`, "printable"},
		{"a socket that is no path", "unit: unit.sock", "a unix socket's absolute path"},
		{"what systemctl would complete", "unit: suffrage-member", "such as suffrage-member.service"},
		{"a misspelt key", "perod: 3s", `did you mean "period"`},
	} {
		c := DefaultConfig()
		err := config.Decode("f.yaml", []byte(tt.yaml), &c)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.why, err, tt.want)
		}
	}
	c := DefaultConfig()
	if err := config.Decode("f.yaml", []byte("period: 50ms\nping_timeout: 1s\n"), &c); err != nil || c.PingTimeout != fitness.Duration(time.Second) {
		t.Errorf("a timeout of exactly 20 periods: %v, %v", c.PingTimeout, err)
	}
}
