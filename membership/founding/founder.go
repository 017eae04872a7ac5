package founding

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"suffrage/member"
	"suffrage/membership"
	"suffrage/membership/host"
	"suffrage/snapshots"
)

// Founder makes clusters on this host.
type Founder struct {
	// Host is this host's name, which is its member's.
	Host string
	// Data is where the host's files are, Datastore etcd's own directory and
	// Snapshots that of the snapshots.
	Data, Datastore, Snapshots string
	// Places are the other hosts of the roster.
	Places []Place
	Look   Look
}

// Plan is what would be made, or why it is not.
type Plan struct {
	By      string            `json:"by"`
	Host    string            `json:"host"`
	Cluster string            `json:"cluster_id"`
	Member  string            `json:"member"`
	Members map[string]string `json:"members"`
	Token   string            `json:"token"`
	// Silent are hosts that did not answer. Confirm names them.
	Silent []string `json:"silent,omitempty"`
	// Confirm is the text that has to be typed.
	Confirm string `json:"confirm"`
	// GoesOn: it was begun before, and is completed.
	GoesOn bool `json:"goes_on,omitempty"`
	// Refusals, if there are any: nothing is made.
	Refusals []membership.Refusal `json:"refusals,omitempty"`

	// What follows is of reset only. From is the snapshot, or "own".
	From     string           `json:"from,omitempty"`
	Snapshot *snapshots.Facts `json:"snapshot,omitempty"`
	// Stopped are the hosts that answer, run no member, and have a datastore still.
	Stopped  []string `json:"stopped,omitempty"`
	Replaces []string `json:"replaces,omitempty"`
	// Aside: there is a datastore here, and it is moved. AsideAs is where it is then.
	Aside   bool   `json:"aside,omitempty"`
	AsideAs string `json:"aside_as,omitempty"`
	// Revision is the new cluster's first, once it is made.
	Revision int64 `json:"revision,omitempty"`

	bump int64
}

// ErrChanged means that the hosts were seen otherwise after the confirmation.
var ErrChanged = errors.New("founding: what was seen has changed since it was shown; nothing was made: look again")

// Identity is what StandingOf wants, from the datastore itself.
func Identity(dataDir string) (cluster, id string) {
	i, err := member.IdentityOf(dataDir)
	if err != nil {
		return "", "" // a datastore all the same
	}
	return i.Cluster, i.Member
}

// see looks at all hosts.
func (f Founder) see(ctx context.Context) (Sight, error) {
	local, err := host.StandingOf(f.Data, f.Datastore, Identity)
	if err != nil {
		return Sight{}, err
	}
	return Sight{f.Host, local, f.Look.Ask(ctx, f.Places)}, nil
}

func newToken() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return "suffrage-" + hex.EncodeToString(b)
}

// identify computes the IDs.
func (p *Plan) identify() error {
	id, err := member.IdentityIn(p.Members, p.Host, p.Token)
	p.Cluster, p.Member = id.Cluster, id.Member
	return err
}

func (p *Plan) refuse(refusals []membership.Refusal) {
	now := time.Now().UTC()
	for i := range refusals {
		refusals[i].Since = now
	}
	p.Refusals = refusals
}

func (p Plan) record() host.Cluster {
	return host.Cluster{ID: p.Cluster, Member: p.Member, Token: p.Token, Members: p.Members, By: p.By, At: time.Now().UTC(), Replaces: p.Replaces, From: p.From}
}

// same reports whether a second look would make the same.
func (p Plan) same(q Plan) bool {
	return len(q.Refusals) == 0 && p.Confirm == q.Confirm && p.Aside == q.Aside && p.GoesOn == q.GoesOn &&
		slices.Equal(p.Stopped, q.Stopped) && slices.Equal(p.Replaces, q.Replaces)
}

// PlanCreate looks at all hosts and says what creating this host's member of a
// cluster of these members would do.
func (f Founder) PlanCreate(ctx context.Context, initial map[string]string) (Plan, error) {
	s, err := f.see(ctx)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{By: host.ByCreate, Host: f.Host, Members: initial, Silent: s.Silent(), Token: newToken(), GoesOn: goesOn(s.Local, host.ByCreate) != nil}
	record, refusals := CreateRefusals(s, initial)
	if record != nil {
		p.Token = record.Token
	}
	p.refuse(refusals)
	if err := errors.Join(p.identify(), snapshots.Room(f.Datastore, 0)); err != nil {
		return Plan{}, err
	}
	p.Confirm = "create " + names(initial)
	if len(p.Silent) > 0 {
		p.Confirm += "; no etcd on " + strings.Join(p.Silent, ",")
	}
	return p, nil
}

// Create makes what was planned, after a second look.
func (f Founder) Create(ctx context.Context, p Plan) (Plan, error) {
	again, err := f.PlanCreate(ctx, p.Members)
	if err != nil {
		return p, err
	}
	// The first host draws a token at each look; whatever has one already keeps it.
	taken := p.GoesOn || First(p.Members) != p.Host
	if !p.same(again) || taken && p.Token != again.Token {
		again.Token = ""
		return again, ErrChanged
	}
	making, err := f.open(ctx, func(l host.Standing) []membership.Refusal { return createHere(f.Host, l, p.Members) })
	if err != nil {
		return p, err
	}
	defer making.Close()
	return p, making.Make(p.record(), func(dir string) error { return member.Create(dir, f.Host, p.Members, p.Token) })
}

// open opens the founding, and looks at this host once more with nobody else at
// work here.
func (f Founder) open(ctx context.Context, refusals func(host.Standing) []membership.Refusal) (*host.Founding, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	making, err := host.Found(ctx, f.Data, f.Datastore)
	if err != nil {
		return nil, err
	}
	local, err := host.StandingOf(f.Data, f.Datastore, Identity)
	if err == nil {
		if r := refusals(local); len(r) > 0 {
			err = fmt.Errorf("%w: %s", ErrChanged, r[0])
		}
	}
	if err != nil {
		making.Close()
		return nil, err
	}
	return making, nil
}
