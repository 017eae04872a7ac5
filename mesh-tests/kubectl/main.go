// Command kubectl is kubectl as it is released, built from its module: for the
// commands that the docs show. It is a module of its own: kubectl needs packages
// that Suffrage does not.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err) // says it, and ends with its code
	}
}
