// Package agent is the daemon on each host: it runs the probes of package
// probes on one schedule, keeps the newest samples of every signal, and tells
// them to whoever asks with a key that is in the roster.
//
// The contract:
//
//   - It measures and tells, and judges nothing. By itself it changes nothing but
//     its own files (two probe files and the boot id, below 3 MiB in Config.Dir).
//   - Where it runs this host's etcd server it takes orders, a closed list of
//     verbs, each under a Term (package membership/host). One at a time; one that
//     was begun is brought to its end, whoever has gone away. All else is told:
//     an order has no path and no command in it.
//   - Every period gives every signal a sample, or the reason why there is none.
//     A lost ping is a sample. A probe that failed is a sample without a number,
//     and shows as broken in the report's probes, its series' error and the
//     metric suffrage_agent_probe_success.
//   - A disk run gives one sample when it ends, however long it took. One that
//     goes on for longer than two periods (half a second at least) gives a
//     sample of the time so far at each further tick: a disk that hangs is seen
//     as slow at once, and not as silence.
//   - Each sample tells how late the agent itself was: at the tick that began
//     it, or, when more, at the moment that it ended.
//   - Times are by a clock that begins at the wall clock's time and then runs by
//     the kernel's boot time: it never jumps, and counts on while a laptop sleeps.
//   - One port: HTTP/2 for the API ("h2") and ping frames
//     (probes.PingProtocol), told apart by ALPN; TLS by identity, so any host of
//     the roster may read. Metrics are plain HTTP on a second address.
//   - Everything from outside is bounded: connections, headers, times, sizes.
//
// Client is the other side: it pulls reports and believes nothing in them that
// it cannot check.
//
// Words:
//
//	Round   one period's probes, spread over four slots so that they do not
//	        disturb each other
//	Late    by how much a tick came after it was due
//	Ring    the newest samples of one signal, and their window
package agent
