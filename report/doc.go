// Package report tells of weeks: what Suffrage would have done, what it refused
// and why, how the hosts fared against their limits, and what acting would have
// changed. It is made of the timelines that controllers keep (membership.Moment)
// and is read before a fleet is armed.
//
// It is pure: readers and writers are handed in, the period is an argument. It
// keeps what it needs of a period and never the moments themselves, so that a
// year takes the memory of a day (the bounds are at their constants).
//
// Words:
//
//	Moment    one line of a timeline: what a round saw and said
//	Period    the time that is reported on; a Report is what it came to
//	Gap       a silence longer than the moment before it announced: nobody
//	          looked, or nobody kept it. Nothing is known of it; it is never
//	          counted as good, nor as bad
//	Span      how often and how long something held
//	Column    one of the equal parts of a period that charts are made of
//
// What a moment says holds up to the next one, since a change is written down
// within seconds. All times of a period add up: known and unknown are the whole.
package report
