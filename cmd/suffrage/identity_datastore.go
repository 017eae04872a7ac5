package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"suffrage/identity"
)

// Files under dir that a client of the datastore endpoint shows.
const (
	datastoreCert = "datastore.crt"
	datastoreKey  = "datastore.key"
)

func newIdentityDatastoreCmd() *cobra.Command {
	var f hostFiles
	var validity time.Duration
	var anew bool
	cmd := &cobra.Command{
		Use:   "datastore",
		Short: "Issue the certificate for clients of this host's datastore endpoint",
		Long: `Makes DIR/datastore.key (mode 0600) where there is none, and DIR/datastore.crt:
what K3s or a Kubernetes API server on this host shows to the datastore endpoint
(endpoint.listen), and the flags for it. Neither etcd nor an agent accepts this
certificate, and the endpoint accepts it on this host only: whoever has it can
read and write keys here, but none by which votes move.

Run again, it renews the certificate for the same key; what is connected goes on.
--new-key replaces the key too: what showed the old one is refused from its next
connection on.`,
		Example: `  suffrage identity datastore
  suffrage identity datastore --validity 2160h
  suffrage identity datastore --new-key     # after the old key leaked`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			own, err := identity.LoadKey(f.path("host.key"))
			if err != nil {
				return err
			}
			host, err := f.self(own, "", "")
			if err != nil {
				return err
			}
			until, err := issueDatastore(f.dir, host.Name, validity, anew)
			if err != nil {
				return err
			}
			cert, key, ca := f.path(datastoreCert), f.path(datastoreKey), f.path("ca.crt")
			fmt.Fprintf(cmd.ErrOrStderr(), "issued for clients on %s, good until %s; run it again before that\n", host.Name, until.Format(time.RFC3339))
			if wantsJSON(cmd) {
				return printJSON(cmd.OutOrStdout(), map[string]any{"host": host.Name, "certificate_file": cert, "key": key, "ca": ca, "not_after": until})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "--datastore-cafile=%s\n--datastore-certfile=%s\n--datastore-keyfile=%s\n", ca, cert, key)
			return err
		},
	}
	f.flags(cmd)
	cmd.Flags().DurationVar(&validity, "validity", identity.DefaultValidity, "how long the certificate is good, 1h to 87600h")
	cmd.Flags().BoolVar(&anew, "new-key", false, "replace the key too")
	return cmd
}

// issueDatastore writes the two files, each at once: a client may read them at any
// moment. Between a new key and its certificate nothing fits, for a moment.
func issueDatastore(dir, host string, validity time.Duration, anew bool) (until time.Time, err error) {
	keyPath := filepath.Join(dir, datastoreKey)
	key, err := identity.LoadKey(keyPath)
	if anew || errors.Is(err, fs.ErrNotExist) {
		fresh := keyPath + ".new"
		if key, err = identity.GenerateKey(); err != nil {
			return until, err
		}
		if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return until, fmt.Errorf("identity: issue for the datastore: %w", err)
		}
		if err := key.Save(fresh); err != nil {
			return until, err
		}
		if err := os.Rename(fresh, keyPath); err != nil {
			return until, fmt.Errorf("identity: issue for the datastore: %w", err)
		}
	} else if err != nil {
		return until, err
	}
	text, err := identity.Datastore(key, host, validity)
	if err != nil {
		return until, err
	}
	cert, err := identity.ParseCertificate(text)
	if err != nil {
		return until, err
	}
	certPath := filepath.Join(dir, datastoreCert)
	err = os.WriteFile(certPath+".new", text, 0o644)
	if err == nil {
		err = os.Rename(certPath+".new", certPath)
	}
	if err != nil {
		return until, fmt.Errorf("identity: issue for the datastore: %w", err)
	}
	return cert.NotAfter.UTC(), nil
}
