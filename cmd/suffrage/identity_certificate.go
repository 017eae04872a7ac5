package main

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"suffrage/identity"
)

func newIdentityCACmd() *cobra.Command {
	cmd := &cobra.Command{Use: "ca", Short: "The authority that signs etcd certificates", Example: "  suffrage identity ca init"}
	var dir string
	init := &cobra.Command{
		Use:   "init",
		Short: "Make the authority, once, on one machine",
		Long: `Makes DIR/ca.key (mode 0600, stays on this machine) and DIR/ca.crt (to be copied
to every host), and prints the certificate's path. Refuses where ca.crt exists.`,
		Example: `  suffrage identity ca init
  suffrage identity ca init --dir ./authority -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("identity: make directory: %w", err)
			}
			a, err := identity.NewAuthority(dir)
			if err != nil {
				return err
			}
			path := filepath.Join(dir, "ca.crt")
			fmt.Fprintf(cmd.ErrOrStderr(), "made the authority; copy %s to every host, keep %s here and a copy of it offline\n", path, filepath.Join(dir, "ca.key"))
			if wantsJSON(cmd) {
				return printJSON(cmd.OutOrStdout(), map[string]any{
					"certificate_file": path, "key": filepath.Join(dir, "ca.key"), "not_after": a.Certificate().NotAfter.UTC(),
				})
			}
			fmt.Fprintln(cmd.OutOrStdout(), path)
			return nil
		},
	}
	init.Flags().StringVar(&dir, "dir", "/etc/suffrage", "directory to make ca.key and ca.crt in")
	cmd.AddCommand(init)
	return cmd
}

func newIdentityRequestCmd() *cobra.Command {
	var f hostFiles
	var name, address string
	cmd := &cobra.Command{
		Use:   "request",
		Short: "Print a request for this host's etcd certificate",
		Long: `Prints a certificate request (PEM, nothing secret in it) for this host, as the
roster has it. Carry it to the authority's machine and sign it there.`,
		Example: `  suffrage identity request > h1.csr
  suffrage identity request --host h1 --address 100.64.0.1 > h1.csr   # without a roster`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			key, err := identity.LoadKey(f.path("host.key"))
			if err != nil {
				return err
			}
			host, err := f.self(key, name, address)
			if err != nil {
				return err
			}
			csr, err := identity.Request(key, host.Name, host.Address)
			if err != nil {
				return err
			}
			if wantsJSON(cmd) {
				return printJSON(cmd.OutOrStdout(), map[string]any{"host": host.Name, "address": host.Address, "fingerprint": host.Fingerprint, "request": string(csr)})
			}
			_, err = cmd.OutOrStdout().Write(csr)
			return err
		},
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&name, "host", "", "this host's name (default: from the roster)")
	cmd.Flags().StringVar(&address, "address", "", "this host's mesh address (default: from the roster)")
	return cmd
}

// self is this host, from the flags if given, otherwise the roster's host with this key.
func (f *hostFiles) self(key *identity.Key, name, address string) (identity.RosterHost, error) {
	if name != "" || address != "" {
		return rosterHost(name, address, identity.DefaultPort, key)
	}
	roster, err := identity.LoadRoster(f.rosterPath())
	if err != nil {
		return identity.RosterHost{}, err
	}
	host, ok := roster.ByFingerprint(key.Fingerprint())
	if !ok {
		return host, fmt.Errorf("identity: no host of %s has the fingerprint of %s, %s: put this host in the roster, or give --host and --address",
			f.rosterPath(), f.path("host.key"), key.Fingerprint())
	}
	return host, nil
}

func newIdentitySignCmd() *cobra.Command {
	var f hostFiles
	var validity time.Duration
	cmd := &cobra.Command{
		Use:   "sign CSR",
		Short: "Sign a host's request with the authority and print the certificate",
		Long: `Signs only if name, address and key of the request are those that the roster has
together. Prints the certificate (PEM); it belongs in DIR/host.crt on that host.
CSR is a file, or - for standard input.`,
		Example: `  suffrage identity sign h1.csr > h1.crt
  ssh h1 suffrage identity request | suffrage identity sign - --roster roster.yaml > h1.crt`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			csr, err := readRequest(cmd, args[0])
			if err != nil {
				return err
			}
			roster, err := identity.LoadRoster(f.rosterPath())
			if err != nil {
				return err
			}
			authority, err := identity.LoadAuthority(f.dir)
			if err != nil {
				return err
			}
			signed, err := authority.Sign(csr, roster, validity)
			if err != nil {
				return err
			}
			cert, err := identity.ParseCertificate(signed)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "signed for host %s, good until %s; install it there as host.crt\n", cert.Subject.CommonName, cert.NotAfter.UTC().Format(time.RFC3339))
			if wantsJSON(cmd) {
				return printJSON(cmd.OutOrStdout(), map[string]any{"host": cert.Subject.CommonName, "not_after": cert.NotAfter.UTC(), "certificate": string(signed)})
			}
			_, err = cmd.OutOrStdout().Write(signed)
			return err
		},
	}
	f.flags(cmd)
	cmd.Flags().DurationVar(&validity, "validity", identity.DefaultValidity, "how long the certificate is good, 1h to 87600h")
	return cmd
}

// readRequest reads a little more than any request, so that Sign says that it is too large.
func readRequest(cmd *cobra.Command, name string) ([]byte, error) {
	in := cmd.InOrStdin()
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("identity: read request: %w", err)
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, 128<<10))
	if err != nil {
		return nil, fmt.Errorf("identity: read request %s: %w", name, err)
	}
	if block, _ := pem.Decode(data); block != nil && strings.HasSuffix(block.Type, "PRIVATE KEY") {
		return nil, fmt.Errorf("identity: %s is a private key, which should not be here: make a request on its host ('suffrage identity request')", name)
	}
	return data, nil
}

func newIdentityCheckCmd() *cobra.Command {
	var f hostFiles
	var certPath string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check an etcd certificate against the roster",
		Long: `Checks that the certificate is for the key, name and address that the roster has,
for both server and client use, signed by DIR/ca.crt if that is there, and not
about to expire. Fails with the codes of what is wrong; a certificate that only
nears its end (certificate-expiring, 30 days) is reported without failing.`,
		Example: `  suffrage identity check
  suffrage identity check --cert h4.crt --roster roster.yaml -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if certPath == "" {
				certPath = f.path("host.crt")
			}
			result, err := f.check(certPath)
			if err != nil {
				return err
			}
			if wantsJSON(cmd) {
				err = printJSON(cmd.OutOrStdout(), result)
			} else {
				_, err = io.WriteString(cmd.OutOrStdout(), result.String())
			}
			return errors.Join(err, result.failure())
		},
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&certPath, "cert", "", "certificate to check (default DIR/host.crt)")
	return cmd
}

// checkedCertificate is the JSON of identity check.
type checkedCertificate struct {
	Host        string                        `json:"host"`
	Certificate shownCertificate              `json:"certificate"`
	Issuer      bool                          `json:"issuer_checked"`
	Problems    []identity.CertificateProblem `json:"problems"`
}

func (f *hostFiles) check(certPath string) (checkedCertificate, error) {
	var none checkedCertificate
	cert, err := identity.LoadCertificate(certPath)
	if errors.Is(err, fs.ErrNotExist) {
		return none, fmt.Errorf("%w; 'suffrage identity request' starts the way to one", err)
	}
	if err != nil {
		return none, err
	}
	roster, err := identity.LoadRoster(f.rosterPath())
	if err != nil {
		return none, err
	}
	fp, err := identity.FingerprintOf(cert.PublicKey)
	if err != nil {
		return none, err
	}
	host, ok := roster.ByFingerprint(fp)
	if !ok {
		host, ok = roster.ByName(cert.Subject.CommonName)
	}
	if !ok {
		return none, fmt.Errorf("identity: check %s: neither its key %s nor its name %q is in %s: name the roster that has its host", certPath, fp, cert.Subject.CommonName, f.rosterPath())
	}
	authority, err := identity.LoadCertificate(f.path("ca.crt"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return none, err
	}
	problems := identity.CheckCertificate(cert, host, authority, time.Now())
	if problems == nil {
		problems = []identity.CertificateProblem{}
	}
	return checkedCertificate{
		Host:        host.Name,
		Certificate: shownCertificate{certPath, cert.Subject.CommonName, cert.NotBefore.UTC(), cert.NotAfter.UTC()},
		Issuer:      authority != nil,
		Problems:    problems,
	}, nil
}

func (c checkedCertificate) String() string {
	var b strings.Builder
	for _, p := range c.Problems {
		fmt.Fprintln(&b, p.Error())
	}
	if len(c.Problems) == 0 {
		fmt.Fprintf(&b, "ok: %s is good for host %s until %s\n", c.Certificate.File, c.Host, c.Certificate.NotAfter.Format(time.RFC3339))
	}
	if !c.Issuer {
		b.WriteString("not checked: who signed it, since there is no ca.crt beside it\n")
	}
	return b.String()
}

func (c checkedCertificate) failure() error {
	var codes []string
	for _, p := range c.Problems {
		if p.Code != identity.CertificateExpiring {
			codes = append(codes, p.Code)
		}
	}
	if len(codes) == 0 {
		return nil
	}
	return fmt.Errorf("identity: check %s: %s", c.Certificate.File, strings.Join(codes, ", "))
}
