// Command double stands in for k3s where K3s itself cannot be installed. Towards
// whoever watches or changes its etcd members it behaves as k3s does: a real
// etcd server in this process, a real kube-apiserver beside it, K3s's command
// line, configuration files, files, Node labels, annotations and condition, and
// its ways to join, promote and remove.
//
// What it does is taken from K3s's source around v1.33 (pkg/etcd,
// pkg/configfilearg, pkg/executor/embed) and kept line by line by the tests of
// the package above. What it has not: SQLite and external datastores, snapshots
// and cluster-reset, kubelet, controller manager, scheduler and networks,
// certificates of users (the administrator has a token). What servers
// say to each other while one joins is its own, but for /cacerts and /db/info.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// version is K3s's whose ways are kept, and says that this is not K3s.
const version = "k3s version v1.33.0+double (test double, not K3s)"

func main() {
	if len(os.Args) == 2 && (os.Args[1] == "--version" || os.Args[1] == "-v") {
		fmt.Println(version)
		return
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := run(log); err != nil {
		log.Error(err.Error())
		os.Exit(1)
	}
}

func run(log *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	o, err := parse(os.Args[1:], os.Getenv)
	if err != nil {
		return err
	}
	for _, key := range o.Unknown {
		log.Warn("unknown flag found in config.yaml, skipping", "flag", key)
	}
	if o.Agent {
		return runAgent(ctx, o, log)
	}
	s, err := newServer(ctx, o, log)
	if err != nil {
		return err
	}
	return s.run(ctx)
}
