package report

import "fmt"

// findings are what the figures allow to say, and what not, a sentence each.
func (r Report) findings() []string {
	e, c := r.Effect, r.Effect.Commit
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if r.RecordedSeconds == 0 {
		return []string{"Nothing was recorded in this period, so nothing can be said of it."}
	}
	if r.UnknownSeconds > 0 {
		say("Nothing is known of %s of the period; all that follows is about the other %s.", r.share(r.UnknownSeconds), length(r.RecordedSeconds))
	}
	if times, seconds := r.planned(); times == 0 {
		say("It would have begun nothing.")
	} else {
		say("A plan came up %s, and stood for %s in all. Acting would have begun the first of them; what it would have planned after that, with other voters and a cooldown, cannot be concluded.", plural(times, "time"), length(seconds))
	}
	if r.Asked.Times > 0 {
		say("You would have been asked %s, for %s in all, the longest for %s.", plural(r.Asked.Times, "time"), length(r.Asked.Seconds), length(r.Asked.Longest))
	} else {
		say("It would never have asked you for anything.")
	}
	switch {
	case len(e.Voters) == 0:
		say("No voter was unfit for a whole window: there was nothing to mend.")
	case e.StoodBySeconds == 0:
		say("A voter was unfit for a whole window, and at no time did a fit candidate stand by: acting would have changed nothing.")
	default:
		say("For %s a voter was unfit for a whole window while a fit candidate stood by. For %s of it every guard let the swap pass; that is the time that acting would have shortened, less what a swap itself takes (the candidate catches up, the soak).", length(e.StoodBySeconds), length(min(e.PlannedSeconds, e.StoodBySeconds)))
	}
	if c.CountedSeconds > 0 {
		say("While a swap was planned, the slowest voter that a write waits for took %s as the cluster was led, and would have taken %s with the planned voters (medians over that time); with one more voter lost, %s and %s.",
			c.Led.Before.Median.Text("s"), c.Led.After.Median.Text("s"), c.OneLost.Before.Median.Text("s"), c.OneLost.After.Median.Text("s"))
		say("With one voter lost the planned voters would have been faster for %s of that time and slower for %s.", percent(c.LoweredSeconds, c.CountedSeconds), percent(c.RaisedSeconds, c.CountedSeconds))
	}
	if c.MissingSeconds > 0 {
		say("For %s in which a swap was planned this cannot be said, since a figure or the leader was not known.", length(c.MissingSeconds))
	}
	return out
}

// planned is how often a plan came up, whatever it planned, and for how long one stood:
// there is one at a time.
func (r Report) planned() (times int, seconds float64) {
	for _, p := range r.Plans {
		times, seconds = times+p.Times, seconds+p.Seconds
	}
	return times, seconds
}

func plural(n int, of string) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// howItIsReckoned explains the figures in the report itself.
var howItIsReckoned = []string{
	"The controller that leads notes what it saw and said whenever that changed, to about ten seconds, and otherwise once a minute (more seldom in a large fleet); each note announces the next. What a note says counts up to the next one. Where the next one came later than announced, nobody looked or nobody kept it: that time is not known, and counts neither as good nor as bad.",
	"“Unfit for a whole window” is the verdict at each of 200 evaluations in a row; only that moves a voter. A fit candidate is a host that you marked eligible, without a vote, fit for a whole window. A plan stands when, besides, every guard and every limit lets the swap pass.",
	"What a write waits for: etcd answers once a majority has the entry on disk. With one voter as the leader, that is its own fsync, and from each other voter a round trip and that one's fsync. Of these the slowest that is needed is taken: with three voters the second fastest. A single slow follower of three therefore slows no write until it leads, or another voter is lost; so three figures are given: with the leader that there was, with the worst of all as the leader, and with the worst leader while the fastest other voter is lost.",
	"Each part is the p99 of its own window of 100 samples, a round trip the worse of its two directions. The sum of two p99 is not the p99 of the sum: it is exceeded by at most 2 of 100, however the two depend on each other, so with three voters at most 3 of 100 writes would wait longer than the figure, with five at most 5. It is no latency that a client saw: the time in etcd itself, batches and the client's way are not in it. Medians and shares of time are rounded up to 5 %.",
	"As planned means: the same moment, the voter that goes replaced by the candidate; where the voter that goes led, the worst of the planned voters leads. The candidate's figures were measured while it held no vote: etcd's own writes were not on its disk.",
	"What cannot be concluded: how many swaps there would have been, since the first changes what follows; whether a write would have failed or an election been spared; and anything about times that are not known. The reasons of any one decision are in its recorded inputs: suffrage replay.",
}
