package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"suffrage/membership"
	"suffrage/membership/etcd"
)

func newClusterCmd() *cobra.Command {
	c := &cobra.Command{Use: "cluster", Short: "Make the first cluster, come back from a lost one, accept a new ID", Example: `  suffrage cluster create
  suffrage cluster reset --from latest
  suffrage cluster accept 8e9e05c52164694d`}
	c.AddCommand(newClusterCreateCmd(), newClusterResetCmd())
	c.AddCommand(&cobra.Command{
		Use:   "accept CLUSTER-ID",
		Short: "Accept a cluster that a restore or a reset made",
		Long: `A restore makes a new cluster with a new ID. Until you accept it, Suffrage
refuses everything (cluster-replaced). Give the ID that it names: one that is
not the running cluster's is refused.`,
		Example: "  suffrage cluster accept 8e9e05c52164694d",
		Args:    exactly("CLUSTER-ID"),
		RunE: func(c *cobra.Command, args []string) error {
			f, err := openFleet(c)
			if err != nil {
				return err
			}
			defer f.close()
			var v membership.View
			stop := noteSlow(c, "still looking for the cluster that runs")
			etcd.NewObserver(f.Etcd, etcd.Options{HostOf: hostOf(f.roster), ReadOnly: true}).Observe(c.Context()).Fill(&v)
			stop()
			if v.Error != "" {
				return fmt.Errorf("membership-unknown: %s", v.Error)
			}
			if v.ClusterID != args[0] {
				return usage(fmt.Errorf("the running cluster is %s, not %s; nothing was changed", v.ClusterID, args[0]))
			}
			var voters []string
			for _, m := range v.Voters() {
				voters = append(voters, m.ID)
			}
			ctx, cancel := f.asking(c)
			defer cancel()
			if err := etcd.Accept(ctx, f.client, v.ClusterID, voters, time.Now().UTC()); err != nil {
				return f.unreachable(err)
			}
			if wantsJSON(c) {
				return printJSON(c.OutOrStdout(), map[string]any{"cluster_id": v.ClusterID, "voters": voters})
			}
			fmt.Fprintf(c.OutOrStdout(), "cluster %s with %d voters is accepted; what was measured before does not count\n", v.ClusterID, len(voters))
			return nil
		},
	})
	return c
}
