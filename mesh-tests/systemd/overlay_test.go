package systemd

import (
	"fmt"
	"slices"

	"suffrage/fitness"
)

// A socket where Tailscale's is, open to every user as Tailscale's is, on which
// systemd has a program give one answer. The real daemon is asked by
// mesh-tests/overlay; here it is what the agent's unit may touch that counts.
const (
	tailscaleSocket = `[Socket]
ListenStream=/run/tailscale/tailscaled.sock
SocketMode=0666
Accept=yes
`
	tailscaleAnswer = `[Service]
ExecStart=-/bin/cat /etc/tailscale-answer
StandardInput=socket
StandardOutput=socket
`
)

// answers has a host's Tailscale say that it reaches another host directly.
func (f *fleet) answers(name, peer string) {
	f.t.Helper()
	m := f.hosts[name]
	body := fmt.Sprintf(`{"BackendState":"Running","Peer":{"nodekey:1":{"TailscaleIPs":[%q],"CurAddr":"192.0.2.2:41641","Active":true}}}`, f.hosts[peer].address)
	m.put("/etc/tailscale-answer", fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	m.put("/usr/lib/systemd/system/tailscaled.socket", tailscaleSocket)
	m.put("/usr/lib/systemd/system/tailscaled@.service", tailscaleAnswer)
	m.run("systemctl", "daemon-reload")
	m.run("systemctl", "start", "tailscaled.socket")
}

// sees waits until a host's agent tells of that path: the unit lets it ask.
func (f *fleet) sees(name, peer string) {
	f.t.Helper()
	eventually(f.t, name+"'s agent may ask Tailscale", func() bool {
		r, err := f.client.Pull(f.t.Context(), name, 0)
		return err == nil && slices.ContainsFunc(r.Facts.Paths, func(p fitness.Path) bool { return p.Peer == peer && p.Kind == "direct" })
	})
}
