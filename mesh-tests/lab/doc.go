// Package lab makes several hosts of one Linux machine: each has a network of
// its own, an address, processes of its own that can be frozen and killed as a
// whole, and a disk whose fsyncs take as long as told. The processes on them are
// the real ones; only what lies between them is made up.
//
//   - World is the room in which everything happens: a mount, a process and a
//     network namespace that the tests' process enters before the first test.
//     Whatever becomes of it, the kernel takes everything in it away.
//   - Network carries packets between the hosts. One thread of a process of its
//     own moves them, and holds them back, loses them or blocks them as told,
//     by pair and direction. There is no netem in every kernel, and this is the
//     same everywhere.
//   - Host is one machine: Start, Run, Freeze, Thaw, Kill.
//   - Disk is a file system of a host that passes everything through to the
//     disk, and makes each fsync take as long as told.
//   - Fleet is hosts with Suffrage on them: agents, members, controllers, the
//     configuration that a real host would have but for its speed. Node is one
//     of them: PowerOff, Boot, and what its owner runs there.
//
// Needed: Linux, root, /dev/net/tun, /dev/fuse and a cgroup2 to write in. Where
// something is missing the tests are skipped and say what.
//
// Addresses are 10.77.0.0/24 in namespaces without any route elsewhere: nothing
// leaves the machine.
package lab
