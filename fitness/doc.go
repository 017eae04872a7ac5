// Package fitness says what the numbers mean: it turns samples that agents
// took into readings, readings into verdicts, and verdicts into blame and rank.
//
// It is pure. It imports no clock, no network, no file and no logger; the time
// is always an argument. The same inputs give the same verdict, in whatever
// order they arrive. purity_test.go holds it to that.
//
// Words:
//
//	Sample   one measurement of one signal; it may be lost or failed
//	Series   the samples of one signal (of one pair, where the signal is a
//	         pair's), oldest first: at most four windows
//	Window   the newest 100 samples that count
//	Reading  a series judged against its limits: the figure, the band it lies
//	         in, and for how many evaluations in a row it has lain there
//	Whole    a band held at every evaluation over two windows of samples. This
//	         is what "for a whole window" means everywhere in Suffrage: a p99
//	         over 100 samples stays bad for L+97 evaluations after a burst of L
//	         bad samples, so the first window forgets any burst and the second
//	         proves the state. Bursts of 1 to 99 samples never hold whole.
//	Verdict  Fit, Marginal, Unfit or Unknown, with reasons. The zero value is
//	         Unknown, and Unknown is never fit.
//	Blame    which voter a slow pair is to be laid at, by counterfactual
//
// Units: durations are seconds, memory is bytes, in float64 so that one window
// serves every signal.
package fitness
