// Package systemd proves on booted hosts what the unit files, the fence and
// membership/host's Systemd promise: each host is a Debian of its own with
// systemd as its first process, in systemd-nspawn, on an overlay over one root.
//
// It needs root and what mesh-tests/root.sh makes; `make systemd` runs it. Every
// host takes away what it made: its processes by their cgroup, its mounts, its
// network namespace.
//
// What these hosts cannot show: resource limits (this needs the controllers in
// cgroup v2), losing what was not synced (a killed host keeps the page cache).
package systemd
