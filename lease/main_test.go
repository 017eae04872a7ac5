package lease_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"suffrage/fitness"
	"suffrage/lease"
	"suffrage/lease/leasetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// short is the tightest timing at E = 1 s: Stop is 8 s.
func short(c *leasetest.Clock) lease.Config {
	cfg := lease.DefaultConfig()
	cfg.Duration, cfg.Renew = fitness.Duration(15*time.Second), fitness.Duration(time.Second)
	if c != nil {
		cfg.Clock = c.Now
	}
	return cfg
}

func TestMemoryConforms(t *testing.T) {
	var c leasetest.Clock
	leasetest.Suite{Config: short(&c), Bubble: true, Open: func(*testing.T) leasetest.Backend {
		var m leasetest.Memory
		return leasetest.Backend{Store: m.Client(nil), Delete: m.Delete, Garble: m.Garble}
	}}.Run(t)
}
