// Package control is the loop: gather → Decide → record and report, and in mode
// active, under the Lease, one act → observe.
//
// It declares what it needs (Agents, Cluster, Book; Members, Hosts, Removals,
// History, Journal) and carries no knowledge of how those are reached. One Loop
// is one leader's term of office: it begins with nothing, so everything is
// Unknown until the agents have been pulled.
//
// The Lease is taken only when there is something to do, and everything is
// looked at again once it is held. The Operator keeps nothing: it writes the
// intent into the journal, asks the Lease, acts once, and the next round looks.
//
// Trust in times: a report's times are by its host's clock. They are shifted,
// as a report is taken in, by the difference between the report's Now and the
// reader's clock, so that ages count and no two clocks are compared.
package control
