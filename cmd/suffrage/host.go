package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"suffrage/apiserver"
	"suffrage/membership"
	"suffrage/membership/etcd"
)

func newHostCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "host",
		Short: "Say which hosts may hold a vote, and which may never lose it",
		Long: `Marks are kept in etcd with who set them, when and why. They move nothing by
themselves:
  eligible    may be given a vote, and may lose it
  ineligible  may not be given one; if it votes, it may be moved
  pinned      may never lose its vote automatically
A voter that was never marked is unmanaged: reported, never moved. With
controller.lease_store: kubernetes annotations on Nodes count too, and the
cautious word goes first: docs/kubernetes.md.`,
		Example: `  suffrage host list
  suffrage host eligible h4 --reason "wired, SSD"
  suffrage host pin h1`,
	}
	c.AddCommand(newHostListCmd())
	for _, m := range markings {
		c.AddCommand(newMarkCmd(m))
	}
	return c
}

// marking is one word of the owner on a host.
type marking struct {
	verb, short string
	set         func(*membership.Mark, membership.Say)
}

var markings = []marking{
	{"eligible", "Allow the host a vote", func(m *membership.Mark, s membership.Say) { s.Value = true; m.Eligible = &s }},
	{"ineligible", "Do not allow the host a vote", func(m *membership.Mark, s membership.Say) { m.Eligible = &s }},
	{"pin", "Never take the host's vote automatically", func(m *membership.Mark, s membership.Say) { s.Value = true; m.Pinned = &s }},
	{"unpin", "Allow the host's vote to be taken", func(m *membership.Mark, s membership.Say) { m.Pinned = &s }},
}

// mark writes one word on a host down, and gives all that are said of it then.
func (f *fleet) mark(ctx context.Context, host string, m marking, say membership.Say) (membership.Mark, error) {
	return etcd.UpdateMark(ctx, f.client, host, func(there membership.Mark) (membership.Mark, error) {
		m.set(&there, say)
		return there, nil
	})
}

// withNode is a host's mark with what its Node says of it, and a note where that makes
// it another one: what is said here does not take an annotation back.
func (f *fleet) withNode(ctx context.Context, host string, said membership.Mark) (both membership.Mark, note string, err error) {
	if f.nodes == nil {
		return said, "", nil
	}
	on, err := f.nodes.Look(ctx)
	if err != nil {
		return said, "", fmt.Errorf("what its Node says cannot be read: %w", f.unreachable(err))
	}
	if both = said.And(on.Marks[host]); both.Word() != said.Word() {
		note = fmt.Sprintf("its Node has annotations too, and with them it is %s: kubectl describe node %s", both.Word(), host)
	}
	return both, note, nil
}

// HostMark is one row of `suffrage host list -o json`.
type HostMark struct {
	Host    string          `json:"host"`
	Address string          `json:"address"`
	Mark    membership.Mark `json:"mark"`
	// Word is pinned, eligible, ineligible or unmanaged.
	Word string `json:"word"`
}

func newHostListCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "All hosts of the roster with their marks",
		Example: "  suffrage host list",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f, err := openFleet(c)
			if err != nil {
				return err
			}
			defer f.close()
			ctx, cancel := f.asking(c)
			defer cancel()
			look, err := marks(ctx, f.client, f.nodes)
			if err != nil {
				return f.unreachable(err)
			}
			out := []HostMark{}
			rows := [][]string{{"HOST", "ADDRESS", "MARK", "BY", "WHEN", "REASON"}}
			for _, h := range f.roster.Hosts() {
				m := look.Marks[h.Name]
				out = append(out, HostMark{h.Name, h.Address.String(), m, m.Word()})
				s := membership.Say{By: "-"}
				if m.IsPinned() {
					s = *m.Pinned
				} else if m.Eligible != nil {
					s = *m.Eligible
				}
				when := "-"
				if !s.At.IsZero() {
					when = ago(s.At, time.Now())
				}
				rows = append(rows, []string{h.Name, h.Address.String(), m.Word(), s.By, when, s.Reason})
			}
			if wantsJSON(c) {
				return printJSON(c.OutOrStdout(), out)
			}
			table(c.OutOrStdout(), rows)
			return nil
		},
	}
}

func newMarkCmd(m marking) *cobra.Command {
	c := &cobra.Command{
		Use:               m.verb + " HOST",
		Short:             m.short,
		Example:           fmt.Sprintf("  suffrage host %s h4 --reason \"new SSD\"", m.verb),
		Args:              exactly("HOST"),
		ValidArgsFunction: completeHosts,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := saidBy(c)
			if err != nil {
				return err
			}
			say := membership.Say{By: s.By, At: s.At, Reason: s.Reason}
			f, err := openFleet(c)
			if err != nil {
				return err
			}
			defer f.close()
			if err := f.known(args[0]); err != nil {
				return err
			}
			ctx, cancel := f.asking(c)
			defer cancel()
			mark, err := f.mark(ctx, args[0], m, say)
			if err != nil {
				return f.unreachable(err)
			}
			if wantsJSON(c) {
				h, _ := f.roster.ByName(args[0])
				return printJSON(c.OutOrStdout(), HostMark{h.Name, h.Address.String(), mark, mark.Word()})
			}
			fmt.Fprintf(c.OutOrStdout(), "%s is %s, said by %s\n", args[0], mark.Word(), say.By)
			// It was said all the same, whatever the API server answers.
			_, note, err := f.withNode(ctx, args[0], mark)
			if err != nil {
				fmt.Fprintln(c.ErrOrStderr(), err)
			} else if note != "" {
				fmt.Fprintln(c.OutOrStdout(), note)
			}
			return nil
		},
	}
	sayFlags(c)
	return c
}

// unreachable says which etcd did not do it, and where to look.
func (f *fleet) unreachable(err error) error {
	if _, ok := errors.AsType[*apiserver.Error](err); ok {
		return err // it says all
	}
	if errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded {
		// The client tries every endpoint, so that no address is to blame.
		return fmt.Errorf("etcd did not answer in time at any of %s: most often there is no quorum; suffrage status shows which voters answer",
			strings.Join(f.Etcd.Endpoints, ", "))
	}
	what, next := etcd.Explain(err, f.Etcd.Endpoints[0])
	return fmt.Errorf("%s; %s", what, next)
}

// caller is the person behind sudo where there is one.
func caller() string {
	name := os.Getenv("SUDO_USER")
	if name == "" {
		if u, err := user.Current(); err == nil {
			name = u.Username
		}
	}
	host, _ := os.Hostname()
	return name + "@" + host
}

// maxText bounds what a person says in a mark, in bytes.
const maxText = 500

// oneLine refuses what would upset the tables and terminals that show it later.
func oneLine(text string) error {
	if len(text) > maxText {
		return fmt.Errorf("found %d bytes; allowed: at most %d", len(text), maxText)
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("found %q; allowed: one line of printable text", r)
		}
	}
	return nil
}

// exactly takes the arguments that are named, no more and no fewer.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return usage(fmt.Errorf("%s takes %d argument(s), %v; got %d", c.CommandPath(), len(names), names, len(args)))
	}
}

// completeHosts completes host names from the roster of this host.
func completeHosts(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	_, _, roster, err := loadHost(c)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, h := range roster.Hosts() {
		names = append(names, h.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
