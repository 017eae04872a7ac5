package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Paths of the supervisor. The second one's content is the double's own.
const (
	pathCA        = "/cacerts"
	pathBootstrap = "/v1-k3s/server-bootstrap"
	pathMembers   = "/db/info"
)

const answerLimit = 1 << 20

var errDuplicate = errors.New("duplicate node name found, please use a unique name for this node")

// errMemberList: the server that is to be joined cannot list the members yet.
var errMemberList = errors.New("failed to get MemberList from server")

// other is a server that is asked for things.
type other struct {
	base  string
	token string
	http  *http.Client
}

// newOther trusts the authority that the server names, if the token's hash, where
// it has one, is of it.
func newOther(ctx context.Context, base, token string) (*other, error) {
	o := &other{base: strings.TrimRight(base, "/"), token: token}
	o.trust(&tls.Config{InsecureSkipVerify: true})
	ca, err := o.get(ctx, pathCA)
	if err != nil {
		return nil, fmt.Errorf("failed to get CA certs: %w", err)
	}
	if want := hashOf(token); want != "" && want != hash(ca) {
		return nil, errors.New("token CA hash does not match the Cluster CA certificate hash")
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s%s: no certificate", base, pathCA)
	}
	o.http.CloseIdleConnections()
	o.trust(&tls.Config{RootCAs: roots})
	return o, nil
}

func (o *other) trust(cfg *tls.Config) {
	o.http = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}}
}

func (o *other) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.base+path, nil)
	if err != nil {
		return nil, err
	}
	if path != pathCA {
		req.SetBasicAuth("server", password(o.token))
	}
	resp, err := o.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s%s: %s: %s", o.base, path, resp.Status, bytes.TrimSpace(body))
	}
	return body, nil
}

// bootstrap writes the cluster's shared files as the other server has them.
func (o *other) bootstrap(ctx context.Context, l layout) error {
	body, err := o.get(ctx, pathBootstrap)
	if err != nil {
		return err
	}
	var files map[string][]byte
	if err := json.Unmarshal(body, &files); err != nil {
		return fmt.Errorf("%s%s: %w", o.base, pathBootstrap, err)
	}
	for _, name := range shared {
		if len(files[name]) == 0 {
			return fmt.Errorf("%s%s: no %s", o.base, pathBootstrap, name)
		}
		if err := write(l.tls(name), files[name]); err != nil {
			return err
		}
	}
	return nil
}

// bootstrapFiles is what bootstrap gets.
func bootstrapFiles(l layout) ([]byte, error) {
	files := map[string][]byte{}
	for _, name := range shared {
		content, err := os.ReadFile(l.tls(name))
		if err != nil {
			return nil, err
		}
		files[name] = content
	}
	return json.Marshal(files)
}

// member is one of the list that a server gives.
type member struct {
	ID         uint64   `json:"ID"`
	Name       string   `json:"name"`
	PeerURLs   []string `json:"peerURLs"`
	ClientURLs []string `json:"clientURLs"`
	IsLearner  bool     `json:"isLearner"`
}

func (o *other) members(ctx context.Context) ([]member, error) {
	body, err := o.get(ctx, pathMembers)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMemberList, err)
	}
	var list struct{ Members []member }
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("%s%s: %w", o.base, pathMembers, err)
	}
	return list.Members, nil
}

// votersOf are the client URLs of voters but for the one with an address; those
// of the preferred host come first.
func votersOf(members []member, but, preferred string) (out []string) {
	for _, m := range members {
		if m.IsLearner || len(m.ClientURLs) == 0 || hostIn(m.ClientURLs[0]) == but {
			continue
		}
		if hostIn(m.ClientURLs[0]) == preferred {
			out = append(append([]string{}, m.ClientURLs...), out...)
			continue
		}
		out = append(out, m.ClientURLs...)
	}
	return out
}

func hostIn(u string) string {
	p, err := url.Parse(u)
	if err != nil {
		return ""
	}
	return p.Hostname()
}

// join adds this member as a learner and writes etcd's configuration. It waits
// while another learner is not promoted yet, or the cluster calls itself
// unhealthy, as it does for a while after each change.
func (s *store) join(ctx context.Context, from *other) error {
	for said := ""; ; {
		err := s.joinOnce(ctx, from)
		if !errors.Is(err, rpctypes.ErrTooManyLearners) && !errors.Is(err, rpctypes.ErrUnhealthy) && !errors.Is(err, errMemberList) {
			return err
		}
		if err.Error() != said {
			s.log.Info("waiting for other members to finish joining etcd cluster", "reason", err)
			said = err.Error()
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *store) joinOnce(ctx context.Context, from *other) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	members, err := from.members(ctx)
	if err != nil {
		return err
	}
	var cluster []string
	add := true
	for _, m := range members {
		if len(m.PeerURLs) == 0 {
			continue
		}
		here := hostIn(m.PeerURLs[0]) == s.o.NodeIP
		if m.Name == "" && here { // it was added and has not started since
			m.Name = s.name
		}
		if m.Name == s.name && here {
			add = false
		}
		if m.Name != s.name && nodeOf(m.Name) == s.o.NodeName {
			// With another node name it gets another member name too.
			return errors.Join(errDuplicate, os.Remove(s.l.nameFile()))
		}
		cluster = append(cluster, m.Name+"="+m.PeerURLs[0])
	}
	if add {
		client, err := s.dial(ctx, votersOf(members, s.o.NodeIP, hostIn(from.base))...)
		if err != nil {
			return err
		}
		defer client.Close()
		if _, err := client.MemberAddAsLearner(ctx, []string{s.url(2380)}); err != nil {
			return err
		}
		s.log.Info("added as a learner", "member", s.name, "peer", s.url(2380))
		cluster = append(cluster, s.name+"="+s.url(2380))
	}
	return s.write(initial{cluster: strings.Join(cluster, ","), state: "existing"})
}
