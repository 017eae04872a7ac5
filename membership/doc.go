// Package membership says who should hold an etcd vote.
//
// It is pure: Decide is one function of one value. Inputs hold everything that
// it looks at (the time, the owner's policy, one View of the cluster and its
// hosts, the readings of package fitness, the operations of the past); a
// Decision holds exactly one of: nothing to do, a plan, or refusals. Inputs are
// written as JSON and decided again from that file by `suffrage replay`, with
// the same answer.
//
// It imports no clock, no network, no file and no logger. purity_test.go holds
// it to that.
//
// Words:
//
//	Host      a machine of the fleet: a name and one mesh address
//	Member    etcd's word; a Voter votes, a Learner does not yet
//	Standby   a host that holds no vote
//	Mark      what the owner says of a host: eligible, pinned, ineligible
//	View      one consistent observation of members, hosts and cluster facts
//	Swap      one voter in, one voter out
//	Plan      what would be done, in steps
//	Operation a plan under way, with its journal; ended, it is history
//	Act       the next thing to do for it, decided from what is
//	Refusal   a reason not to act: a stable code, a subject, the figures
//
// What holds whatever the inputs: a plan never takes the vote of a pinned host,
// never gives one to a host that is not eligible, is never made while any voter
// does not answer or anything about the membership is unknown, and never for a
// cluster with fewer than three voters. decide_test.go states these as
// properties over generated inputs.
//
// An operation is carried out one Act at a time, each decided from the View and
// not from what was done: a controller that died anywhere is followed by one
// that finds the same next act. package memtest proves that over a model
// cluster, at every point where a process may die.
package membership
