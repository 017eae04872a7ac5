// Package history records what clients of etcd did and saw, and judges it: was
// every acknowledged write there from then on, and did nobody read what was not
// true any more?
//
// A History is recorded by Clients, which put and get a few keys all the time,
// each call with the times between which it must have taken effect. One that
// had no answer is kept as unknown: it may take effect at any later time, or
// never. Check judges by linearizability, key by key, with porcupine
// (github.com/anishathalye/porcupine). A History can be written to a file and
// judged again later: `go test ./mesh-tests/history -run TestJudge -args FILE`.
package history
