package main

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"suffrage/config"
	"suffrage/identity"
	"suffrage/member"
	"suffrage/membership/host"
)

func newMemberCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "member",
		Short: "Run the etcd member of this host",
		Long: `Runs one etcd server, etcd's own code, in this process. It reads the section
"member" of the settings file. What is not written there:
  name                        host
  data_dir                    etcd under data
  listen_peer, listen_client  https on the host's roster address, 2380 and 2379
  ca, cert, key               ca.crt, host.crt and host.key in dir

An empty data directory is refused: a disk that is not mounted must not become a
second cluster. What makes a cluster is suffrage cluster create, and nothing else.
So is a datastore of a cluster that suffrage cluster reset has replaced, where
the host on which that was done can be asked.

A host that was given a vote by suffrage finds the members to join in
data/join.json. While data/fence.json exists nothing is started, whoever asks:
this host's member was removed, or is about to be. A member that finds itself
removed from its cluster fences its host and moves its datastore aside.

Exit codes: 0 stopped as told; 1 etcd could not be started, or ended by itself
(it was removed, its disk is full), with the reason; 2 wrong settings; 3 fenced, or of a
cluster that was replaced.`,
		Example: `  suffrage member`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := loadSettings(c)
			if err != nil {
				return err
			}
			// Before anything else, and again when the start is counted.
			if err := host.Fenced(s.Data); err != nil {
				return &exitError{exitFenced, err}
			}
			m, err := s.member()
			if err != nil {
				return usage(err)
			}
			if err := config.Under("member", m.Validate()); err != nil {
				return usage(fmt.Errorf("%s: %w", c.Flag("config").Value, err))
			}
			return s.runMember(c, m)
		},
	}
	return c
}

// runMember counts the start, joins where an order says so, and runs etcd.
func (s Settings) runMember(c *cobra.Command, m member.Config) error {
	log := newLog(c).With("host", s.Host)
	start := member.Start{Log: log}
	join, err := host.Joining(s.Data)
	if err != nil {
		return err
	}
	if join != nil {
		has, err := member.HasDatastore(m.DataDir)
		if err != nil {
			return err
		}
		if !has {
			start.Join, m.InitialCluster = true, join.Peers
		}
		start.Ready = func() {
			if err := host.Joined(s.Data); err != nil {
				log.Warn("what to join is not forgotten; it is not used either, since there is a datastore", "err", err)
			}
		}
	}
	if err := s.replaced(c.Context(), c, m.DataDir); err != nil {
		return &exitError{exitFenced, err}
	}
	err = host.Begin(c.Context(), s.Data)
	if errors.Is(err, host.ErrFenced) {
		return &exitError{exitFenced, err}
	}
	if err != nil {
		return err
	}
	err = start.Run(c.Context(), m)
	if gone, ok := errors.AsType[*member.RemovedError](err); ok {
		// Whoever starts it again would do so for ever.
		if e := host.Removed(c.Context(), s.Data, m.DataDir, gone.Member); e != nil {
			return errors.Join(err, e)
		}
		log.Warn("this host is a standby now: nothing starts its etcd again, and its datastore was moved aside", "member", gone.Member, "datastore", m.DataDir+".removed-*")
	}
	return err
}

// member is the member section with what was not written filled in.
func (s Settings) member() (member.Config, error) {
	m := s.Member
	if s.Flavour == k3s {
		return m, errK3s
	}
	if m.Name == "" {
		m.Name = s.Host
	}
	for _, l := range []struct {
		to   *string
		port int
	}{{&m.ListenPeer, 2380}, {&m.ListenClient, 2379}} {
		if *l.to != "" {
			continue
		}
		roster, err := identity.LoadRoster(s.rosterFile())
		if err != nil {
			return m, fmt.Errorf("member.listen_peer and listen_client are not both set, and the roster cannot tell: %w", err)
		}
		h, ok := roster.ByName(s.Host)
		if !ok {
			return m, fmt.Errorf("host %q is not in %s: add it, or set member.listen_peer and member.listen_client", s.Host, s.rosterFile())
		}
		u := url.URL{Scheme: "https", Host: fmt.Sprintf("%s:%d", h.Address, l.port)}
		if h.Address.Is6() {
			u.Host = fmt.Sprintf("[%s]:%d", h.Address, l.port)
		}
		*l.to = u.String()
	}
	if m.CA+m.Cert+m.Key == "" && strings.HasPrefix(m.ListenPeer, "https:") {
		m.CA, m.Cert, m.Key = filepath.Join(s.Dir, "ca.crt"), filepath.Join(s.Dir, "host.crt"), s.keyFile()
	}
	return m, nil
}
