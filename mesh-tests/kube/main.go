// Command kube is a Kubernetes API server, as it is released, built from its
// module. It is a module of its own: the server needs hundreds of packages that
// Suffrage does not.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
