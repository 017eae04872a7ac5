// Package scenarios is what a fleet lives through, on hosts with networks and
// disks of their own (mesh-tests/lab): each test is a fleet, a fault and what
// has to come of it, with clients that put and get all the time and whose
// history has to be linearizable. `make mesh` runs them; the README of mesh-tests
// says what each proves.
package scenarios
