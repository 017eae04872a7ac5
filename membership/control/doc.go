// Package control is the loop: gather → Decide → record and report.
//
// It declares what it needs (Agents, Cluster, Book) and carries no knowledge of
// how those are reached. One Loop is one leader's term of office: it begins
// with nothing, so everything is Unknown until the agents have been pulled.
//
// Trust in times: a report's times are by its host's clock. They are shifted,
// as a report is taken in, by the difference between the report's Now and the
// reader's clock, so that ages count and no two clocks are compared.
package control
