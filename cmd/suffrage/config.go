package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"

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
				j, err := yaml.YAMLToJSON([]byte(exampleConfig)) // the keys of the file
				if err != nil {
					return fmt.Errorf("config: %w", err)
				}
				return printJSON(c.OutOrStdout(), json.RawMessage(j))
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

// whoIs reads the key and the roster that the settings in path name, and gives all that
// is wrong with these and the member. What cannot be read is nil.
func (s Settings) whoIs(path string) (key *identity.Key, roster *identity.Roster, problems []error) {
	key, kerr := identity.LoadKey(s.keyFile())
	roster, rerr := identity.LoadRoster(s.rosterFile())
	problems = append(split(kerr), split(rerr)...)
	if kerr == nil && rerr == nil {
		problems = append(problems, split(s.inRoster(path, key, roster))...)
	}
	if rerr == nil {
		problems = append(problems, split(s.checkMember())...)
	}
	return key, roster, problems
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
	s, err := readSettings(path)
	if err != nil {
		found(err)
	} else {
		// What the settings name can only be looked at when they can be read.
		s.fill()
		_, _, problems := s.whoIs(path)
		for _, e := range problems {
			check.Problems = append(check.Problems, e.Error())
		}
		if len(s.Etcd.Endpoints) > 0 {
			if err := s.Etcd.Validate(); err != nil {
				found(config.Under("etcd", err))
			} else if _, err := s.Etcd.TLS(); err != nil {
				found(err)
			}
		}
		if s.Controller.LeaseStore == inKubernetes {
			if _, err := s.Kubernetes.Server(); err != nil {
				found(fmt.Errorf("%s: kubernetes: %w", path, err))
			}
		}
		// It may be missing: what writes there first makes it.
		if err := unix.Access(s.Data, unix.W_OK); err != nil && !errors.Is(err, os.ErrNotExist) {
			found(fmt.Errorf("%s: data: %s: %w: let the user that the agent runs as write there", path, s.Data, err))
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

// checkMember looks at the section as `suffrage member` does.
func (s Settings) checkMember() error {
	if s.Flavour == k3s {
		return nil
	}
	m, err := s.member()
	if err != nil {
		return err
	}
	return config.Under("member", m.Validate())
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
