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
		return page.Question{Lines: []string{strings.ReplaceAll(pauseDoes, "\n", " ")}}, nil
	case "resume":
		return page.Question{Lines: []string{resumeDoes}}, nil
	}
	m, err := markingOf(o.Verb)
	if err != nil {
		return none, err
	}
	if o.Host == "" {
		return none, fmt.Errorf("%s: of which host?", o.Verb)
	}
	return page.Question{Lines: []string{o.Host + ": " + m.short + "."}}, nil
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
	case d.Mode != membership.Active:
		return none, dryRun(d)
	}
	out := page.Question{Lines: []string{swapDoes(q), "Because " + d.Plan.Why + "."}}
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
	return fmt.Sprintf("%s is %s, said by %s", o.Host, mark.Word(), by), nil
}

var _ page.Owner = pageOwner{}
