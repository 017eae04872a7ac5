package membertest

import (
	"net/http"
	"time"
)

// healthy asks the metrics address, which needs no certificate, whether the
// member serves reads through a quorum.
func (m *Member) healthy() bool {
	c := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Get(m.Config.Metrics + "/health")
	if err != nil {
		return false
	}
	r.Body.Close()
	return r.StatusCode == http.StatusOK
}
