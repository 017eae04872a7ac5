package overlay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"suffrage/demo"
	"suffrage/fitness"
	"suffrage/mesh-tests/lab"
)

// fleet is Suffrage on the hosts of a tailnet: h1 votes, the others stand by.
type fleet struct {
	*tailnet
	program string
	files   *demo.Fleet
}

// install writes what a real host would have, and starts agents and etcd.
func (n *tailnet) install(program string) *fleet {
	n.t.Helper()
	f := &fleet{tailnet: n, program: program, files: &demo.Fleet{Dir: filepath.Join(n.dir, "suffrage")}}
	for i, h := range n.hosts {
		a := n.address(h)
		f.files.Hosts = append(f.files.Hosts, demo.Host{Name: h.Name, Mesh: a, Real: a, Dir: filepath.Join(f.files.Dir, h.Name), Voter: i == 0})
	}
	n.do(f.files.Write(f.settings))
	for i, h := range n.hosts {
		n.start(h, "agent", f.command(i, "agent")...)
	}
	n.wait("the cluster is made", func() (string, bool) {
		_, err := f.suffrage(0, "cluster", "create", "--confirm", "create h1")
		return said(err), err == nil
	})
	n.start(n.hosts[0], "member", f.command(0, "member")...)
	return f
}

func (f *fleet) settings(d *demo.Fleet, h demo.Host) (any, error) {
	type section = map[string]any
	return section{
		"host": h.Name, "dir": h.Dir, "data": h.Path(demo.DataDir),
		"agent":     section{"period": "200ms", "ping_timeout": "2s", "tailscale_socket": f.socket(f.host(h.Name))},
		"member":    section{"initial_cluster": d.InitialCluster(), "quota": 256 << 20},
		"etcd":      section{"endpoints": d.ClientURLs()},
		"snapshots": section{"at": []string{}},
	}, nil
}

func (f *fleet) command(host int, args ...string) []string {
	return append(append([]string{f.program}, args...), "--config", f.files.Hosts[host].Path(demo.ConfigFile))
}

// suffrage runs a command on a host, as its owner does.
func (f *fleet) suffrage(host int, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(f.t.Context(), 30*time.Second)
	defer cancel()
	return f.hosts[host].Run(ctx, f.command(host, args...)...)
}

// paths are those that `suffrage status` has, asked for on h1: "h1 h2" is from
// h1 to h2.
func (f *fleet) paths() (map[string]fitness.Path, error) {
	out, err := f.suffrage(0, "status", "-o", "json")
	if err != nil {
		return nil, err
	}
	var s struct {
		Hosts []struct {
			Host  string
			Paths []fitness.Path
		}
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		return nil, err
	}
	paths := map[string]fitness.Path{}
	for _, h := range s.Hosts {
		for _, p := range h.Paths {
			paths[h.Host+" "+p.Peer] = p
		}
	}
	return paths, nil
}

// until waits until both ways between h1 and h2 read like this.
func (f *fleet) until(what string, want func(fitness.Path) bool) map[string]fitness.Path {
	f.t.Helper()
	var paths map[string]fitness.Path
	f.wait(what, func() (string, bool) {
		var err error
		paths, err = f.paths()
		return fmt.Sprint(paths, err), err == nil && want(paths["h1 h2"]) && want(paths["h2 h1"])
	})
	return paths
}

// says waits until a command's answer on h1 has a text, or has it no more. A
// direct path may be lost for a moment where the machine stalls.
func (f *fleet) says(text string, has bool, args ...string) {
	f.t.Helper()
	f.wait(fmt.Sprintf("suffrage %s: %q %v", strings.Join(args, " "), text, has), func() (string, bool) {
		out, err := f.suffrage(0, args...)
		return out + said(err), err == nil && strings.Contains(out, text) == has
	})
}

// counts waits until the metrics of a host's agent have a line.
func (f *fleet) counts(h *lab.Host, line string) {
	f.t.Helper()
	f.wait(h.Name+": "+line, func() (string, bool) {
		page, err := f.metrics(h)
		return said(err), strings.Contains(page, line)
	})
}

// metrics is the page of a host's agent, which only that host can ask for.
func (f *fleet) metrics(h *lab.Host) (string, error) {
	var page []byte
	err := f.network.In(h.Number, func() error {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", demo.AgentMetricsPort), 10*time.Second)
		if err != nil {
			return err
		}
		dial := func(context.Context, string, string) (net.Conn, error) { return conn, nil }
		c := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 10 * time.Second}
		answer, err := c.Get("http://agent/metrics")
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		page, err = io.ReadAll(answer.Body)
		return err
	})
	return string(page), err
}

// log is what a service of a host has said.
func (f *fleet) log(h *lab.Host, service string) string {
	f.t.Helper()
	b, err := os.ReadFile(filepath.Join(h.Dir, service+".log"))
	f.do(err)
	return string(b)
}
