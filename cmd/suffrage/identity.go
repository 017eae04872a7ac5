package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"suffrage/identity"
)

// hostFiles are the files of one host in its directory.
type hostFiles struct{ dir, roster string }

func (f *hostFiles) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dir, "dir", "/etc/suffrage", "directory of host.key, host.crt, ca.crt and roster.yaml")
	cmd.Flags().StringVar(&f.roster, "roster", "", "roster file (default DIR/roster.yaml)")
}

func (f *hostFiles) path(name string) string { return filepath.Join(f.dir, name) }

func (f *hostFiles) rosterPath() string {
	if f.roster != "" {
		return f.roster
	}
	return f.path("roster.yaml")
}

func newIdentityCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "identity",
		Short: "Make and show this host's key, and issue etcd certificates",
		Long: `Every host has one ed25519 key, host.key, which never leaves it. Hosts know each
other by the fingerprints in the roster; etcd's own TLS gets certificates from
an authority, made once, on one machine.`,
		Example: `  # on every host
  suffrage identity init --host h1 --address 100.64.0.1
  # once, on the machine that keeps the authority
  suffrage identity ca init
  # on every host, after its entry is in the roster
  suffrage identity request > h1.csr
  # on the authority's machine; carry the answer back as /etc/suffrage/host.crt
  suffrage identity sign h1.csr > h1.crt
  # on every host
  suffrage identity check`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newIdentityInitCmd(), newIdentityShowCmd(), newIdentityCACmd(),
		newIdentityRequestCmd(), newIdentitySignCmd(), newIdentityCheckCmd(), newIdentityDatastoreCmd())
	return cmd
}

func newIdentityInitCmd() *cobra.Command {
	var f hostFiles
	var name, address string
	var port uint16
	cmd := &cobra.Command{
		Use:   "init --host NAME --address IP",
		Short: "Make this host's key and print its roster entry",
		Long: `Makes DIR/host.key (mode 0600) and prints the entry to paste under "hosts:" in
the roster of every host. Refuses where a key already exists.`,
		Example: `  suffrage identity init --host h1 --address 100.64.0.1
  suffrage identity init --host h1 --address 100.64.0.1 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			key, err := identity.GenerateKey()
			if err != nil {
				return err
			}
			host, err := rosterHost(name, address, port, key)
			if err != nil {
				return usage(err)
			}
			if err := os.MkdirAll(f.dir, 0o755); err != nil {
				return fmt.Errorf("identity: make directory: %w", err)
			}
			if err := key.Save(f.path("host.key")); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "made %s; it never leaves this host. Put this under \"hosts:\" in the roster of every host:\n", f.path("host.key"))
			if wantsJSON(cmd) {
				return printJSON(cmd.OutOrStdout(), shownIdentity{Key: f.path("host.key"), Fingerprint: key.Fingerprint(), Host: &host, Entry: host.Entry()})
			}
			fmt.Fprint(cmd.OutOrStdout(), host.Entry())
			return nil
		},
	}
	cmd.Flags().StringVar(&f.dir, "dir", "/etc/suffrage", "directory to make host.key in")
	cmd.Flags().StringVar(&name, "host", "", "this host's name, a DNS label (with K3s: its node name)")
	cmd.Flags().StringVar(&address, "address", "", "this host's one mesh address, an IP")
	cmd.Flags().Uint16Var(&port, "port", identity.DefaultPort, "TLS port of this host's agent")
	return cmd
}

func rosterHost(name, address string, port uint16, key *identity.Key) (identity.RosterHost, error) {
	if name == "" || address == "" {
		return identity.RosterHost{}, errors.New("identity: --host and --address are needed: the host's name and its mesh address")
	}
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return identity.RosterHost{}, fmt.Errorf("identity: --address: %w", err)
	}
	host := identity.RosterHost{Name: name, Address: addr, Port: port, Fingerprint: key.Fingerprint()}
	if err := host.Validate(); err != nil {
		return identity.RosterHost{}, fmt.Errorf("identity: %w", err)
	}
	return host, nil
}

// shownIdentity is the JSON of identity init and show.
type shownIdentity struct {
	Key         string               `json:"key"` // path
	Fingerprint identity.Fingerprint `json:"fingerprint"`
	Host        *identity.RosterHost `json:"host,omitempty"`  // absent: not in the roster
	Entry       string               `json:"entry,omitempty"` // of the roster, as YAML
	Certificate *shownCertificate    `json:"certificate,omitempty"`
}

type shownCertificate struct {
	File      string    `json:"file"`
	Subject   string    `json:"subject"`
	NotBefore time.Time `json:"not_before"`
	NotAfter  time.Time `json:"not_after"`
}

func newIdentityShowCmd() *cobra.Command {
	var f hostFiles
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show this host's fingerprint, roster entry and certificate expiry",
		Example: `  suffrage identity show
  suffrage identity show -o json | jq -r .fingerprint`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			shown, err := f.show(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if wantsJSON(cmd) {
				return printJSON(cmd.OutOrStdout(), shown)
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "fingerprint  %s\n", shown.Fingerprint)
			if c := shown.Certificate; c != nil {
				days := int(time.Until(c.NotAfter).Hours() / 24)
				fmt.Fprintf(out, "certificate  %s for %s, good until %s (%d days)\n", c.File, c.Subject, c.NotAfter.Format(time.RFC3339), days)
			}
			if shown.Host != nil {
				fmt.Fprintf(out, "roster entry\n%s", shown.Entry)
			}
			return nil
		},
	}
	f.flags(cmd)
	return cmd
}

// show gathers what is there; what is not there yet is noted, with the next thing to do.
func (f *hostFiles) show(notes io.Writer) (shownIdentity, error) {
	key, err := identity.LoadKey(f.path("host.key"))
	if err != nil {
		return shownIdentity{}, err
	}
	shown := shownIdentity{Key: f.path("host.key"), Fingerprint: key.Fingerprint()}
	switch roster, err := identity.LoadRoster(f.rosterPath()); {
	case errors.Is(err, fs.ErrNotExist):
		fmt.Fprintf(notes, "no roster at %s yet: put this host's name, address and fingerprint in one\n", f.rosterPath())
	case err != nil:
		return shownIdentity{}, err
	default:
		if host, ok := roster.ByFingerprint(key.Fingerprint()); ok {
			shown.Host, shown.Entry = &host, host.Entry()
		} else {
			fmt.Fprintf(notes, "no host of %s has this fingerprint: put this host in it\n", f.rosterPath())
		}
	}
	switch cert, err := identity.LoadCertificate(f.path("host.crt")); {
	case errors.Is(err, fs.ErrNotExist):
		fmt.Fprintf(notes, "no etcd certificate at %s; a voter needs one: suffrage identity request\n", f.path("host.crt"))
	case err != nil:
		return shownIdentity{}, err
	default:
		shown.Certificate = &shownCertificate{f.path("host.crt"), cert.Subject.CommonName, cert.NotBefore.UTC(), cert.NotAfter.UTC()}
	}
	return shown, nil
}
