// Command etcd36 is the etcd server of the 3.6 series as it is released, built
// from its module. It is a module of its own: one module cannot hold two
// versions of etcd.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
