package main

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// confirm asks the person at the terminal. --yes answers for whoever is not at
// one; without either nothing is done.
func confirm(c *cobra.Command, question string) error {
	if yes, _ := c.Flags().GetBool("yes"); yes {
		return nil
	}
	if !atTerminal(c) {
		return usage(fmt.Errorf("%s needs a confirmation, and nobody is at a terminal to give it: add --yes; nothing was changed", c.CommandPath()))
	}
	return confirmed(c, question)
}

func confirmed(c *cobra.Command, question string) error {
	fmt.Fprintf(c.ErrOrStderr(), "%s\nType yes to go on: ", question)
	if line(c) != "yes" {
		return &exitError{exitFailed, fmt.Errorf("not confirmed; nothing was changed")}
	}
	return nil
}

// confirmText wants one text exactly, which no habit of saying yes gives: from
// --confirm, or typed.
func confirmText(c *cobra.Command, want string) error {
	got, _ := c.Flags().GetString("confirm")
	switch {
	case got == "" && !atTerminal(c):
		return usage(fmt.Errorf("%s needs a confirmation, and nobody is at a terminal to give it: add --confirm \"%s\" if that is so; nothing was changed", c.CommandPath(), want))
	case got == "":
		return typed(c, want)
	}
	return sameText(want, got)
}

func typed(c *cobra.Command, want string) error {
	fmt.Fprintf(c.ErrOrStderr(), "Type exactly this to go on: %s\n> ", want)
	return sameText(want, line(c))
}

func sameText(want, got string) error {
	if got != want {
		return &exitError{exitFailed, fmt.Errorf("not confirmed: the text is exactly %q, not %q; nothing was changed", want, got)}
	}
	return nil
}

func atTerminal(c *cobra.Command) bool {
	f, ok := c.InOrStdin().(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// line is what the person types.
func line(c *cobra.Command) string {
	s := bufio.NewScanner(io.LimitReader(c.InOrStdin(), 1<<10))
	s.Scan()
	return s.Text()
}
