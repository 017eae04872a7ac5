package standby

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"suffrage/identity"
	"suffrage/member"
)

const issue = "suffrage identity request, sign it with the authority, install it as host.crt: docs/install.md"

// certificates looks at what etcd's peers and clients will ask of this host.
func (h Host) certificates() Check {
	const name = "certificates"
	if c, is := h.unread(name); is {
		return c
	}
	if h.K3s != nil {
		return h.k3sCertificates()
	}
	m := h.Member
	if m.Cert == "" {
		return ok(name, "none, since etcd is to speak without TLS")
	}
	m.CA, m.Cert, m.Key = h.at(m.CA), h.at(m.Cert), h.at(m.Key)
	switch err := member.CheckCertificate(m, h.Now()); {
	case errors.Is(err, fs.ErrNotExist):
		return missing(name, err.Error(), issue)
	case errors.Is(err, fs.ErrPermission):
		return unknown(name, err)
	case err != nil:
		return wrong(name, err.Error(), issue)
	}
	cert, err := identity.LoadCertificate(m.Cert)
	if err != nil {
		return unknown(name, err)
	}
	until := "good until " + cert.NotAfter.UTC().Format(time.DateOnly)
	if h.Member.Cert != filepath.Join(h.Dir, "host.crt") {
		return ok(name, "of an authority of your own, "+until) // whose names are the owner's affair, but for the advertised ones
	}
	authority, err := identity.LoadCertificate(m.CA)
	if err != nil {
		return unknown(name, err)
	}
	for _, p := range identity.CheckCertificate(cert, h.Entry, authority, h.Now()) {
		if p.Code != identity.CertificateExpiring {
			return wrong(name, p.Code+": "+p.Detail, p.Lift)
		}
		until += ", which is soon: " + p.Lift
	}
	return ok(name, "for this host's name and address, by the fleet's authority, "+until)
}

// k3sCertificates: a host that was never a server has none, and gets them from
// those that it joins. Those that have ended K3s renews when it starts.
func (h Host) k3sCertificates() Check {
	const name = "certificates"
	dir := filepath.Join(h.K3s.DataDir, "server", "tls", "etcd")
	if _, err := os.Stat(h.at(dir)); errors.Is(err, fs.ErrNotExist) {
		return ok(name, "none yet: K3s brings them when it joins as a server")
	} else if err != nil {
		return unknown(name, err)
	}
	// Paths of K3s's source, pkg/daemons/control/deps.
	for _, c := range []struct{ pair, ca string }{{"client", "server-ca.crt"}, {"server-client", "server-ca.crt"}, {"peer-server-client", "peer-ca.crt"}} {
		found, help := h.k3sPair(dir, c.pair, c.ca)
		if found != "" {
			return wrong(name, found, help)
		}
	}
	return ok(name, "K3s's, in "+dir)
}

func (h Host) k3sPair(dir, pair, ca string) (found, help string) {
	cert, key := filepath.Join(dir, pair+".crt"), filepath.Join(dir, pair+".key")
	help = "k3s certificate rotate makes new ones (K3s stopped)"
	info, err := os.Stat(h.at(key))
	if err != nil {
		return err.Error(), help
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Sprintf("%s has mode %04o, so that others may read it", key, mode), "if nobody else can have read it: chmod 0600 " + key
	}
	p, err := tls.LoadX509KeyPair(h.at(cert), h.at(key))
	if err != nil {
		return fmt.Sprintf("%s and %s: %v", cert, key, err), help
	}
	authority, err := identity.LoadCertificate(h.at(filepath.Join(dir, ca)))
	if err != nil {
		return err.Error(), help
	}
	if err := p.Leaf.CheckSignatureFrom(authority); err != nil {
		return fmt.Sprintf("%s was not signed by %s: they are of another cluster", cert, ca), "move " + dir + " aside: K3s brings new ones when it joins"
	}
	if pair != "client" && !names(p.Leaf, h.Entry) {
		return fmt.Sprintf("%s does not name this host's address %s", cert, h.Entry.Address), "node-ip has to be that address; " + help
	}
	return "", ""
}

func names(c *x509.Certificate, h identity.RosterHost) bool {
	return c.VerifyHostname(strings.Trim(h.Address.String(), "[]")) == nil
}
