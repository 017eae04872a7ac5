package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// As a plugin of kubectl's this program has another name: kubectl finds plugins,
// and what completes their words, by the names of files.
const (
	pluginFile   = "kubectl-suffrage"
	completeFile = "kubectl_complete-suffrage"
)

// called says what a person types to run the program that has this path, and with
// which words.
func called(path string, words []string) (name string, args []string) {
	switch strings.TrimSuffix(filepath.Base(path), ".exe") {
	case pluginFile:
		return "kubectl suffrage", words
	case completeFile:
		return "kubectl suffrage", append([]string{cobra.ShellCompRequestCmd}, words...)
	}
	return "suffrage", words
}

// rename makes usage, examples and errors say what is typed.
func rename(c *cobra.Command, name string) {
	c.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: name}
	lines := strings.NewReplacer("\n  suffrage ", "\n  "+name+" ")
	var all func(*cobra.Command)
	all = func(c *cobra.Command) {
		c.Long = lines.Replace(c.Long)
		c.Example = strings.TrimPrefix(lines.Replace("\n"+c.Example), "\n")
		for _, sub := range c.Commands() {
			all(sub)
		}
	}
	all(c)
}
