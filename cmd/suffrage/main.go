// Suffrage moves etcd votes between hosts by measured health.
//
// This package is the wiring and nothing else: one file per subcommand, which
// reads the settings, makes the parts and ties them together.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"suffrage/membership/host/standby"
)

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it, and means that
		ends = append(ends, syscall.SIGHUP) // a closed terminal
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	name, args := called(os.Args[0], os.Args[1:])
	os.Exit(runAs(ctx, name, args, os.Stdout, os.Stderr))
}

// Exit codes. docs/commands.md has them.
const (
	exitOK     = 0
	exitFailed = 1 // it could not be done; the error says why
	exitUsage  = 2 // the command line or a file that a person wrote is wrong
	exitFenced = 3 // this host's member must not start
)

// run is main without the process: tests call it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runAs(ctx, "suffrage", args, stdout, stderr)
}

func runAs(ctx context.Context, name string, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	rename(root, name)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var quiet *exitError
	if errors.As(err, &quiet) && quiet.err == nil {
		return quiet.code
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	if errors.As(err, &quiet) {
		return quiet.code
	}
	return exitFailed
}

// exitError ends the process with a code; without an error it says nothing more.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage marks an error as the caller's: exit code 2.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitUsage, err}
}

// moreForms is the annotation of a command that has other forms of its answer too.
const moreForms = "forms"

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "suffrage",
		Short: "Moves etcd votes between hosts by measured health",
		Long: `Suffrage measures every host of a small fleet (round trips, fsync, commit,
memory) and says which of them should hold etcd's votes, and why. In dry-run,
the default, it changes nothing; active, it makes the swap: it adds before it
removes, under one lock, and turns back where something goes wrong.

Start here:
  suffrage observe --endpoints https://10.0.0.1:2379 …   look at any etcd
  suffrage demo                                          a fleet on this machine
  suffrage status                                        your fleet in one screen

Exit codes: 0 done; 1 it could not be done, the reason is on stderr; 2 the command
line, or a file that a person wrote, is wrong. docs/commands.md has the forms of
-o json.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
	}
	root.PersistentFlags().StringP("output", "o", "text", `form of the answer: "text" or "json"`)
	if err := root.RegisterFlagCompletionFunc("output", completeForms); err != nil {
		panic(err) // the flag is the one above
	}
	root.PersistentFlags().String("config", defaultConfig, "the settings file of this host")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage(fmt.Errorf("%w; see: %s --help", err, c.CommandPath()))
	})
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		o, _ := c.Flags().GetString("output")
		if forms := strings.Fields(c.Annotations[moreForms]); o != "text" && o != "json" && !slices.Contains(forms, o) {
			return usage(fmt.Errorf("--output %q: allowed are %s and json", o, strings.Join(append([]string{"text"}, forms...), ", ")))
		}
		return nil
	}
	root.AddGroup(&cobra.Group{ID: "look", Title: "Look:"}, &cobra.Group{ID: "say", Title: "Say what you want:"}, &cobra.Group{ID: "run", Title: "Run on a host:"})
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("look", newStatusCmd(), newTopCmd(), newExplainCmd(), newPlanCmd(), newQualifyCmd(), newObserveCmd(), newOperationsCmd(), newDemoCmd(), newDecideCmd(), newReplayCmd(), newReportCmd())
	add("say", newHostCmd(), newModeCmd(), newPauseCmd(), newResumeCmd(), newSwapCmd(), newRegradeCmd(), newTargetCmd(), newRemoveDeadCmd(), newClearQuarantineCmd(), newSnapshotCmd(), newClusterCmd())
	add("run", newAgentCmd(), newControllerCmd(), newMemberCmd(), newStandbyCmd(), newIdentityCmd(), newConfigCmd(), newManCmd())
	strict(root)
	return root
}

// strict makes wrong words the caller's mistake everywhere: cobra shows help and
// exit code 0 for "host elligible h4", which a script takes for success.
func strict(c *cobra.Command) {
	if c.HasSubCommands() && !c.Runnable() {
		c.SuggestionsMinimumDistance = 2
		c.Args = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			err := fmt.Errorf("unknown command %q for %q; see: %s --help", args[0], c.CommandPath(), c.CommandPath())
			if near := c.SuggestionsFor(args[0]); len(near) > 0 {
				err = fmt.Errorf("unknown command %q for %q; did you mean %q?", args[0], c.CommandPath(), near[0])
			}
			return err
		}
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error { return usage(check(c, args)) }
	}
	for _, sub := range c.Commands() {
		strict(sub)
	}
}

// version is the module's, or the commit that it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return standby.Version(info)
}
