// Package k3s starts fleets of k3s servers for tests. Each server is a process:
// the k3s that K3S_BIN names, else the double in the folder below, which keeps
// K3s's contract where K3s cannot be installed. What was seen with the double is
// no finding about K3s, and reports say which it was.
//
// All hosts are on this machine. Each has a loopback address of its own, and what
// K3s has on 127.0.0.1 is on that address too; or a network namespace, with
// K3S_BIN always, and everything is where K3s has it. It needs the API
// server that SUFFRAGE_KUBE_APISERVER names (`make k3s-test` builds it); without
// it tests that call New are skipped.
package k3s
