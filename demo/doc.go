// Package demo runs a whole fleet on one Linux machine without root: five
// hosts, each with its own agent process on its own loopback address, three of
// them with a real etcd member, and two controllers. The processes are this
// same binary with the same configuration format as on real hosts; only what
// lies between them is made up:
//
//   - Fleet is the layout: names, addresses, files. Host hN has the mesh
//     address 127.0.x.N and its processes really listen on 127.0.x.(100+N), with
//     x a number that no other demo on this machine holds.
//   - Relay listens on the mesh addresses and forwards. What it adds to a round
//     trip can be changed while it runs.
//   - SlowDisk holds back the fsyncs of one process through seccomp's user
//     notification, so they are slow for the process and real for the disk.
//   - Supervisor starts the processes, keeps their logs in files, tells when
//     one ends, and leaves none behind, not even when it is killed itself.
//   - Run tells the story: start, all fit, one host gets slow, the windows fill,
//     a decision stands.
//
// Linux only: it needs 127.0.0.0/8 on the loopback device, parent-death signals
// and seccomp. Nothing outside the demo's directory is written, and nothing
// listens outside 127.0.0.0/8.
package demo
