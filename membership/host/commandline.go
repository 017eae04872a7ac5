package host

import (
	"fmt"
	"path/filepath"
	"strings"
)

// CommandLineError is a command line of K3s's with which an order to start could
// not do what it says: it goes before every file of settings.
type CommandLineError struct {
	Found string
	// Help is what would help.
	Help string
}

func (e *CommandLineError) Error() string { return "its command line has " + e.Found + ": " + e.Help }

// Takes gives a *CommandLineError for a command line of K3s's that goes before
// what is written in its files here, else nil.
func (u Systemd) Takes(args []string) error {
	s := Settings{}
	s.Add(args)
	const reload = ", and after that systemctl daemon-reload (K3s need not be restarted)"
	out := "take it out of the unit" + reload
	for _, f := range []string{"cluster-init", "disable-etcd"} {
		on, err := s.On(f)
		switch {
		case err != nil:
			return &CommandLineError{fmt.Sprintf("--%s=%s", f, s.Last(f).Value), out}
		case on && f == "cluster-init":
			return &CommandLineError{"--cluster-init, which would make a new cluster of a removed server", out}
		case on:
			return &CommandLineError{"--disable-etcd, with which K3s keeps no vote", out}
		}
	}
	if at := s["server"]; len(at) > 0 {
		return &CommandLineError{fmt.Sprintf("--server %s, where it would join whoever has lost its vote by then", s.Last("server").Value),
			fmt.Sprintf("move it to config.yaml (server: %s), where the file that Suffrage writes goes before it%s", s.Last("server").Value, reload)}
	}
	for _, d := range []struct{ flag, want, setting string }{{"data-dir", u.DataDir, "k3s.data_dir"}, {"config", strings.TrimSuffix(u.Config, ".d"), "k3s.config_dir"}} {
		if got := s.Last(d.flag).Value; len(s[d.flag]) > 0 && d.want != "" && filepath.Clean(got) != filepath.Clean(d.want) {
			return &CommandLineError{fmt.Sprintf("--%s %s, and by %s it is %s", d.flag, got, d.setting, d.want),
				"correct " + d.setting + ", or take it out of the unit" + reload}
		}
	}
	return nil
}
