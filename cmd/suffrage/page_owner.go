package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"suffrage/membership"
	"suffrage/membership/etcd"
	"suffrage/page"
)

// pageOwner does what is said through the page, as the commands of the same names do.
type pageOwner struct {
	fleet  *fleet
	source *pageSource
}

// Ask is page.Owner.
func (p pageOwner) Ask(ctx context.Context, o page.Order) (page.Question, error) {
	var none page.Question
	for _, h := range []string{o.Host, o.In} {
		if _, there := p.fleet.roster.ByName(h); h != "" && !there {
			return none, fmt.Errorf("the roster has no host %.70q", h)
		}
	}
	switch o.Verb {
	case "swap":
		return p.askSwap(ctx, o)
	case "pause":
		return p.askPause(ctx, true, strings.ReplaceAll(pauseDoes, "\n", " ")), nil
	case "resume":
		return p.askPause(ctx, false, resumeDoes), nil
	}
	m, err := markingOf(o.Verb)
	if err != nil {
		return none, err
	}
	if o.Host == "" {
		return none, fmt.Errorf("%s: of which host?", o.Verb)
	}
	return p.askMark(ctx, o.Host, m)
}

// askPause decides with the pause and without. Whoever stops everything is not held up
// by what that changes: it is not sealed.
func (p pageOwner) askPause(ctx context.Context, pause bool, does string) page.Question {
	q := page.Question{Lines: []string{does}}
	l, err := p.source.Look(ctx)
	if err != nil {
		q.Lines = append(q.Lines, "What that changes now is not known: "+err.Error())
		return q
	}
	with := l.Inputs
	with.Policy.Paused = &membership.Say{Value: pause, By: "the owner", At: l.Inputs.Now}
	changes, _ := whatChanges(membership.Decide(l.Inputs), membership.Decide(with))
	q.Lines = append(q.Lines, changes...)
	return q
}

// askMark decides with the mark and without.
func (p pageOwner) askMark(ctx context.Context, host string, m marking) (q page.Question, err error) {
	l, err := p.source.Look(ctx)
	if err != nil {
		return q, err
	}
	ctx, cancel := context.WithTimeout(ctx, p.fleet.callTimeout())
	defer cancel()
	said, err := etcd.Marks(ctx, p.fleet.client) // the look may be from before the newest word
	if err != nil {
		return q, p.fleet.unreachable(err)
	}
	now, next := said[host], said[host]
	m.set(&next, membership.Say{By: "the owner", At: l.Inputs.Now})
	without, _, nodeErr := p.fleet.withNode(ctx, host, now)
	with, note, _ := p.fleet.withNode(ctx, host, next)
	becomes := fmt.Sprintf("%s is %s, and becomes %s: %s.", host, now.Word(), next.Word(), m.short)
	if now.Word() == next.Word() {
		becomes = fmt.Sprintf("%s is %s, and stays so: %s.", host, now.Word(), m.short)
	}
	q.Lines = []string{becomes}
	switch {
	case nodeErr != nil:
		q.Lines = append(q.Lines, nodeErr.Error())
	case note != "":
		q.Lines = append(q.Lines, note)
	}
	changes, key := whatChanges(membership.Decide(marked(l.Inputs, host, without)), membership.Decide(marked(l.Inputs, host, with)))
	q.Lines, q.Key = append(q.Lines, changes...), becomes+"\n"+note+"\n"+key
	return q, nil
}

// marked are inputs in which a host has a mark.
func marked(in membership.Inputs, host string, m membership.Mark) membership.Inputs {
	in.View.Hosts = slices.Clone(in.View.Hosts)
	for i := range in.View.Hosts {
		if in.View.Hosts[i].Name == host {
			in.View.Hosts[i].Mark = m
		}
	}
	return in
}

func markingOf(verb string) (marking, error) {
	i := slices.IndexFunc(markings, func(m marking) bool { return m.verb == verb })
	if i < 0 {
		return marking{}, fmt.Errorf("page: nobody does %q", verb)
	}
	return markings[i], nil
}

// askSwap decides it by the newest look, which the controller does again before it acts.
func (p pageOwner) askSwap(ctx context.Context, o page.Order) (page.Question, error) {
	var none page.Question
	q := membership.Request{Out: o.Host, In: o.In, By: "the owner", At: time.Now().UTC()}
	if err := q.Validate(); err != nil {
		return none, err
	}
	l, err := p.source.Look(ctx)
	if err != nil {
		return none, err
	}
	in := l.Inputs
	if err := inTheWay(in, q); err != nil {
		return none, err
	}
	in.Request = &q
	d := membership.Decide(in)
	switch {
	case d.Kind != membership.Planned:
		why := []string{fmt.Sprintf("nothing was asked for: swap %s → %s would be refused", q.Out, q.In)}
		for _, r := range d.Refusals {
			why = append(why, r.String()+" → "+r.Next)
		}
		return none, errors.New(strings.Join(why, "; "))
	}
	out := page.Question{Lines: []string{swapDoes(q), "Because " + d.Plan.Why + "."}}
	if d.Mode != membership.Active {
		out.Lines[0], out.Not = d.Plan.String(), dryRun(d)
	}
	for _, s := range d.Plan.Steps {
		line := fmt.Sprintf("%d %s: %s", s.Number, s.Name, s.Text)
		out.Lines, out.Key = append(out.Lines, line), out.Key+line+"\n"
	}
	return out, nil
}

// Do is page.Owner.
func (p pageOwner) Do(ctx context.Context, o page.Order, by, reason string) (string, error) {
	for name, text := range map[string]string{"who": by, "why": reason} {
		if err := oneLine(text); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, p.fleet.callTimeout())
	defer cancel()
	say := membership.Say{By: by, At: time.Now().UTC().Truncate(time.Second), Reason: reason}
	switch o.Verb {
	case "swap":
		q := membership.Request{Out: o.Host, In: o.In, By: by, At: time.Now().UTC(), Reason: reason}
		if err := etcd.PutRequest(ctx, p.fleet.client, q); err != nil {
			return "", p.fleet.notAsked(err)
		}
		return fmt.Sprintf("asked for: %s, said by %s; the controller that leads takes it up, or refuses it", asked(q), by), nil
	case "pause", "resume":
		say.Value = o.Verb == "pause"
		if err := p.fleet.pause(ctx, say); err != nil {
			return "", p.fleet.unreachable(err)
		}
		return o.Verb + "d, said by " + by, nil
	}
	m, err := markingOf(o.Verb)
	if err != nil {
		return "", err
	}
	mark, err := p.fleet.mark(ctx, o.Host, m, say)
	if err != nil {
		return "", p.fleet.unreachable(err)
	}
	done := fmt.Sprintf("%s is %s, said by %s", o.Host, mark.Word(), by)
	switch _, note, err := p.fleet.withNode(ctx, o.Host, mark); {
	case err != nil: // it was said all the same
		done += "; " + err.Error()
	case note != "":
		done += "; " + note
	}
	return done, nil
}

var _ page.Owner = pageOwner{}
