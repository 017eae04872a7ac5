// Package overlay runs Suffrage's agents over a real Tailscale: what they say of
// the paths between hosts is compared with what was done to these.
//
// The hosts are package lab's. tailscaled is the released one, with a device of
// the kernel's; its control server, the relay and STUN are Tailscale's own for
// tests, on a host of their own (mesh-tests/tailscale). The mesh addresses in the
// roster are those that Tailscale gave, so agents, etcd and the owner's commands
// all go through it. UDP is blocked, as many a network does, by the host's own
// firewall: then only the relay is left.
//
// Not here: peer relays, NAT, keys that end (the control server for tests gives
// keys without an end), and hosts that the control server calls offline (it never
// does).
package overlay
