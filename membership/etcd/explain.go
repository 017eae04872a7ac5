package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Explain says what an error of a call to an endpoint means, in words that
// need no knowledge of gRPC or TLS, and the next thing to do.
func Explain(err error, endpoint string) (what, next string) {
	host := endpoint
	if u, e := url.Parse(endpoint); e == nil && u.Host != "" {
		host = u.Host
	}
	for _, f := range []func(error, string) (string, string){explainFile, explainTLS, explainNetwork, explainEtcd} {
		if what, next = f(err, host); what != "" {
			return what, next
		}
	}
	if host == "" {
		return err.Error(), "look at the files and flags given"
	}
	return err.Error(), "look at the log of etcd at " + host
}

func explainFile(err error, _ string) (what, next string) {
	var path *fs.PathError
	if !errors.As(err, &path) {
		return "", ""
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path.Path + " does not exist", "name the file that etcd's own configuration names"
	case errors.Is(err, fs.ErrPermission):
		return path.Path + " may not be read by this user", "run this as the user that may read it (often root: sudo)"
	}
	return "", ""
}

func explainTLS(err error, host string) (what, next string) {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
	)
	text := err.Error()
	switch {
	case strings.Contains(text, "tls: private key does not match"):
		return strings.TrimPrefix(text, "etcd: "), "give the key that the certificate was made for"
	case errors.As(err, &authority):
		by := "an authority"
		if authority.Cert != nil {
			by = fmt.Sprintf("%q", authority.Cert.Issuer.String())
		}
		return "its certificate is signed by " + by + ", which is not in the CA file (nor, without one, trusted by this system)",
			"give the CA that signed etcd's server certificates (K3s: server/tls/etcd/server-ca.crt; kubeadm: /etc/kubernetes/pki/etcd/ca.crt)"
	case errors.As(err, &name):
		names := "none"
		if name.Certificate != nil {
			names = cmp.Or(strings.Join(certNames(name.Certificate), ", "), names)
		}
		return fmt.Sprintf("its certificate does not name %s (it names: %s)", name.Host, names),
			"use an address that the certificate names, or issue the certificate again with this one"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate is expired or not yet valid: " + invalid.Error(), "compare the clocks of the two hosts, then renew the certificate"
	case errors.As(err, &record):
		return "it answers, but not in TLS", "use http:// if etcd runs without TLS there, and check that the port is etcd's client port"
	case strings.Contains(text, "tls: certificate required"), strings.Contains(text, "tls: handshake failure"):
		return "it requires a client certificate", "give a client certificate and its key (--cert and --key)"
	case strings.Contains(text, "remote error: tls: expired certificate"):
		return "it says that our client certificate is expired", "renew it, or compare the clocks"
	case strings.Contains(text, "remote error: tls:"):
		return "it refused our client certificate (" + text[strings.Index(text, "remote error:")+len("remote error: "):] + ")",
			"give a client certificate signed by the CA that etcd's --trusted-ca-file holds"
	case strings.Contains(text, "x509:"):
		return "its certificate was not accepted: " + text[strings.Index(text, "x509:"):], "check the certificate and the CA file"
	}
	return "", ""
}

func certNames(c *x509.Certificate) []string {
	names := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) > 12 {
		names = append(names[:12], fmt.Sprintf("and %d more", len(names)-12))
	}
	return names
}

func explainNetwork(err error, host string) (what, next string) {
	var dns *net.DNSError
	var call *CallError
	timeout := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.ETIMEDOUT)
	switch {
	case errors.As(err, &dns):
		return "the name " + dns.Name + " does not resolve", "use the address, or correct the name"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused: nothing listens at " + host,
			"check the address and port (etcd's --listen-client-urls; K3s and kubeadm: 2379), and that etcd runs"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no route to " + host, "check the address, and that the mesh or VPN is up on both hosts"
	case errors.Is(err, context.Canceled):
		return "the call was given up", "run it again"
	case timeout && errors.As(err, &call) && call.Accepted:
		return "the connection stands, but no answer came in time",
			"its process is frozen or overloaded, its disk stalls, or it has no quorum: look at etcd's log there"
	case timeout:
		return "no connection in time", "check the address, and that no firewall drops packets to it"
	case errors.Is(err, errHungUp), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was closed before any answer", "if etcd uses TLS there, write https:// and give the CA and client certificate; else check that the port is etcd's client port"
	}
	return "", ""
}

func explainEtcd(err error, host string) (what, next string) {
	is := func(targets ...error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
	text := err.Error()
	switch {
	case is(rpctypes.ErrNoSpace):
		return "it refuses writes: its database is at the quota (NOSPACE)",
			"compact and defragment each member, then disarm: etcdctl compact, etcdctl defrag, etcdctl alarm disarm"
	case is(rpctypes.ErrCorrupt):
		return "it refuses requests: a CORRUPT alarm is set", "find the damaged member first: etcdctl endpoint hashkv"
	case is(rpctypes.ErrNoLeader, rpctypes.ErrNotLeader, rpctypes.ErrLeaderChanged):
		return "it has no leader", "wait for an election; if it stays so, too few voters run: start them"
	case is(rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToConnectionLost, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutWaitAppliedIndex):
		return "etcd itself timed out: " + text, "too few voters answer, or a disk stalls: look at the other members"
	case is(rpctypes.ErrStopped), strings.Contains(text, "server stopped"):
		return "it is stopping", "look at why in its log; a removed member stops by itself"
	case isLearnerRefusal(err):
		return "it is a learner, and learners do not serve this", "name a voter as endpoint"
	case isAuthRefusal(err):
		return "etcd's authentication refuses this user", "use a client certificate whose common name is an etcd user that may read"
	case status.Code(err) == codes.Unimplemented, strings.Contains(text, "unexpected HTTP status"), strings.Contains(text, "unexpected content-type"), strings.Contains(text, "HTTP/1"):
		return "something answers there, but it is not etcd's client port", "check the port: client 2379, peers 2380, metrics 2381"
	}
	return "", ""
}

// isLearnerRefusal knows etcd's answer of a learner to what learners do not
// serve. It is never a sign of bad health (etcd-io/etcd#18801).
func isLearnerRefusal(err error) bool {
	return errors.Is(err, rpctypes.ErrGRPCNotSupportedForLearner) || strings.Contains(fmt.Sprint(err), "not supported for learner")
}

// isAuthRefusal knows that etcd's own authentication (users and roles) said no.
func isAuthRefusal(err error) bool {
	switch status.Code(err) {
	case codes.PermissionDenied, codes.Unauthenticated:
		return true
	}
	for _, e := range []error{rpctypes.ErrPermissionDenied, rpctypes.ErrUserEmpty, rpctypes.ErrInvalidAuthToken, rpctypes.ErrUserNotFound} {
		if errors.Is(rpctypes.Error(err), e) || errors.Is(err, e) {
			return true
		}
	}
	return false
}
