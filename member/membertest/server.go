package membertest

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// server is an etcd server of another release, run with the flags that stand
// for the same configuration. Each of these flags is in 3.5 and later.
func server(program string, o order) *exec.Cmd {
	c := o.Config
	var cluster []string
	for _, name := range slices.Sorted(maps.Keys(c.InitialCluster)) {
		cluster = append(cluster, name+"="+c.InitialCluster[name])
	}
	state := "new"
	if o.Join {
		state = "existing"
	}
	args := []string{
		"--name=" + c.Name, "--data-dir=" + c.DataDir,
		"--listen-peer-urls=" + c.ListenPeer, "--initial-advertise-peer-urls=" + c.AdvertisePeer,
		"--listen-client-urls=" + c.ListenClient, "--advertise-client-urls=" + c.AdvertiseClient,
		"--listen-metrics-urls=" + c.Metrics,
		"--initial-cluster=" + strings.Join(cluster, ","), "--initial-cluster-state=" + state, "--initial-cluster-token=suffrage",
		fmt.Sprintf("--heartbeat-interval=%d", c.Heartbeat.Std()/time.Millisecond),
		fmt.Sprintf("--election-timeout=%d", c.ElectionTimeout.Std()/time.Millisecond),
		fmt.Sprintf("--quota-backend-bytes=%d", c.Quota),
		"--log-level=warn",
	}
	if c.Cert != "" {
		args = append(args,
			"--trusted-ca-file="+c.CA, "--cert-file="+c.Cert, "--key-file="+c.Key, "--client-cert-auth",
			"--peer-trusted-ca-file="+c.CA, "--peer-cert-file="+c.Cert, "--peer-key-file="+c.Key, "--peer-client-cert-auth")
	}
	return exec.Command(program, args...)
}
