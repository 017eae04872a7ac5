package main

import (
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// table is ours alone, and of one network namespace.
const table = "suffrage_block"

// block does what this would, of which not every machine has the program:
//
//	table inet suffrage_block {
//	  chain in  { type filter hook input priority 0;  iifname "eth0" meta l4proto udp drop; }
//	  chain out { type filter hook output priority 0; oifname "eth0" meta l4proto udp drop; }
//	}
func block() error {
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	t := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: table})
	for _, way := range []struct {
		name string
		hook *nftables.ChainHook
		key  expr.MetaKey
	}{
		{"in", nftables.ChainHookInput, expr.MetaKeyIIFNAME},
		{"out", nftables.ChainHookOutput, expr.MetaKeyOIFNAME},
	} {
		chain := c.AddChain(&nftables.Chain{Table: t, Name: way.name, Type: nftables.ChainTypeFilter,
			Hooknum: way.hook, Priority: nftables.ChainPriorityFilter})
		c.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: []expr.Any{
			&expr.Meta{Key: way.key, Register: 1},
			&expr.Cmp{Register: 1, Op: expr.CmpOpEq, Data: device("eth0")},
			&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
			&expr.Cmp{Register: 1, Op: expr.CmpOpEq, Data: []byte{unix.IPPROTO_UDP}},
			&expr.Verdict{Kind: expr.VerdictDrop},
		}})
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("nftables: block UDP: %w", err)
	}
	return nil
}

// device is a name as the kernel compares it.
func device(name string) []byte {
	return append([]byte(name), make([]byte, unix.IFNAMSIZ-len(name))...)
}

// allow ends it.
func allow() error {
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	c.DelTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: table})
	if err := c.Flush(); err != nil {
		return fmt.Errorf("nftables: allow UDP: %w", err)
	}
	return nil
}
