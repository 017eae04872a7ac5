package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"suffrage/config"
	"suffrage/identity"
)

// exampleConfig has every key with its default, unit and what breaks when it is
// wrong; a test decodes it and compares it with DefaultSettings.
//
//go:embed example.yaml
var exampleConfig string

func newConfigCmd() *cobra.Command {
	c := &cobra.Command{
		Use:     "config",
		Short:   "Check the settings file, or print an example",
		Example: "  suffrage config example\n  suffrage config check",
	}
	c.AddCommand(&cobra.Command{
		Use:   "example",
		Short: "A settings file with every key, its default and what it means",
		Example: `  suffrage config example > /etc/suffrage/suffrage.yaml
  $EDITOR /etc/suffrage/suffrage.yaml
  suffrage config check`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if wantsJSON(c) {
				s := DefaultSettings()
				if err := config.Decode("example.yaml", []byte(exampleConfig), &s); err != nil {
					return err
				}
				return printJSON(c.OutOrStdout(), s)
			}
			_, err := fmt.Fprint(c.OutOrStdout(), exampleConfig)
			return err
		},
	}, &cobra.Command{
		Use:   "check",
		Short: "Check the settings, the key and the roster of this host",
		Long: `Reads the settings file, the host key and the roster, and reports everything that
is wrong, each with file, line and key. Exit code 2 when something is.`,
		Example: "  suffrage config check --config ./suffrage.yaml",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return checkConfig(c) },
	})
	return c
}

// ConfigCheck is what `suffrage config check -o json` prints.
type ConfigCheck struct {
	OK bool `json:"ok"`
	// Problems are all that was found, in the order of the files.
	Problems []string `json:"problems"`
}

func checkConfig(c *cobra.Command) error {
	check := ConfigCheck{Problems: []string{}}
	found := func(err error) {
		for _, e := range split(err) {
			check.Problems = append(check.Problems, e.Error())
		}
	}
	path := c.Flag("config").Value.String()
	s := DefaultSettings()
	if err := config.Load(path, &s); err != nil {
		found(err)
	} else {
		// What the settings name can only be looked at when they can be read.
		key, kerr := identity.LoadKey(s.keyFile())
		roster, rerr := identity.LoadRoster(s.rosterFile())
		found(kerr)
		found(rerr)
		if h, ok := roster.ByName(s.Host); rerr == nil && !ok {
			found(fmt.Errorf("%s: host %q is not in %s", path, s.Host, s.rosterFile()))
		} else if rerr == nil && kerr == nil && h.Fingerprint != key.Fingerprint() {
			found(fmt.Errorf("%s: %s has fingerprint %s, the key in %s has %s: put the right one in the roster of every host",
				s.rosterFile(), s.Host, h.Fingerprint, s.keyFile(), key.Fingerprint()))
		}
		if len(s.Etcd.Endpoints) > 0 {
			if err := s.Etcd.Validate(); err != nil {
				found(config.Under("etcd", err))
			} else if _, err := s.Etcd.TLS(); err != nil {
				found(err)
			}
		}
		if _, err := os.Stat(s.Data); err != nil && !errors.Is(err, os.ErrNotExist) {
			found(err)
		}
	}
	check.OK = len(check.Problems) == 0
	if wantsJSON(c) {
		if err := printJSON(c.OutOrStdout(), check); err != nil {
			return err
		}
	} else if check.OK {
		fmt.Fprintf(c.OutOrStdout(), "%s, %s and %s are in order\n", path, s.keyFile(), s.rosterFile())
	} else {
		for _, p := range check.Problems {
			fmt.Fprintln(c.OutOrStdout(), p)
		}
	}
	if !check.OK {
		return &exitError{code: exitUsage}
	}
	return nil
}

// split takes joined errors apart.
func split(err error) []error {
	if err == nil {
		return nil
	}
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()
	}
	return []error{err}
}
