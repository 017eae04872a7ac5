package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"suffrage/config"
	"suffrage/identity"
	"suffrage/member"
)

func newMemberCmd() *cobra.Command {
	var bootstrap bool
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
second cluster. --bootstrap makes a NEW cluster of the members in
initial_cluster; give it once, by hand, on each of them, never in a unit file.

Exit codes: 0 stopped as told; 1 etcd could not be started, or ended by itself
(it was removed, its disk is full), with the reason; 2 wrong settings.`,
		Example: `  suffrage member --bootstrap    # once, on each first member
  suffrage member                # ever after, by systemd`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := loadSettings(c)
			if err != nil {
				return err
			}
			m, err := s.member()
			if err != nil {
				return usage(err)
			}
			if err := config.Under("member", m.Validate()); err != nil {
				return usage(fmt.Errorf("%s: %w", c.Flag("config").Value, err))
			}
			return member.Start{Bootstrap: bootstrap, Log: newLog(c).With("host", s.Host)}.Run(c.Context(), m)
		},
	}
	c.Flags().BoolVar(&bootstrap, "bootstrap", false, "make a new cluster; refused where a datastore exists")
	return c
}

// member is the member section with what was not written filled in.
func (s Settings) member() (member.Config, error) {
	m := s.Member
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
