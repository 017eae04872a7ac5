package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/fitness"
	"suffrage/lease"
	"suffrage/membership"
)

// What is kept of operations and of the owner's words, on one member.
func TestKept(t *testing.T) {
	r := newRig(t, 1)
	kv := r.client()
	t.Run("journal and history", func(t *testing.T) { testHistory(t, r.ctx, kv) })
	t.Run("policy", func(t *testing.T) { testPolicy(t, r.ctx, kv) })
	t.Run("request", func(t *testing.T) { testRequest(t, r.ctx, kv) })
	t.Run("target", func(t *testing.T) { testTarget(t, r.ctx, kv) })
}

func testHistory(t *testing.T, ctx context.Context, kv *clientv3.Client) {
	held, release := holding(t, ctx, kv)
	j := NewJournal(held)
	op := membership.Operation{ID: "20260301t000000-1", Out: "h3", In: "h4", Begun: time.Unix(100, 0).UTC(), Steps: []membership.StepRecord{{Name: "join", Begun: time.Unix(101, 0).UTC()}}}
	if err := j.Save(ctx, &op); err != nil {
		t.Fatal(err)
	}
	open, record, err := OwnLease(kv).Open(ctx)
	if err != nil || open == nil || open.ID != op.ID || uint64(record.Term) != j.Term() {
		t.Errorf("open: %+v, %+v, %v", open, record, err)
	}
	if got, err := j.Load(); err != nil || got.ID != op.ID {
		t.Errorf("journal: %+v, %v", got, err)
	}
	if got, err := FindOperation(ctx, kv, OwnLease(kv), op.ID); err != nil || !got.Open() {
		t.Errorf("it is under way: %+v, %v", got, err)
	}
	h := NewHistory(kv, OwnLease(kv).Right(held.Term()))
	if err := h.Record(ctx, 1, op); err == nil {
		t.Error("one that is open is no history")
	}
	op.Outcome, op.Ended = membership.Completed, time.Unix(200, 0).UTC()
	if err := h.Record(ctx, 1, op); err != nil {
		t.Fatal(err)
	}
	again := op
	again.Outcome = membership.Undone
	if err := h.Record(ctx, 1, again); err != nil {
		t.Errorf("recorded twice is recorded once: %v", err)
	}
	if err := j.Save(ctx, nil); err != nil {
		t.Error(err)
	}
	if got, err := FindOperation(ctx, kv, OwnLease(kv), op.ID); err != nil || got.Outcome != membership.Completed {
		t.Errorf("the first record stays: %+v, %v", got, err)
	}
	for _, id := range []string{"", "a/b", "none", strings.Repeat("x", 200)} {
		if _, err := FindOperation(ctx, kv, OwnLease(kv), id); !errors.Is(err, ErrNoOperation) {
			t.Errorf("%.20q: %v", id, err)
		}
		bad := op
		if bad.ID = id; id != "none" && h.Record(ctx, 1, bad) == nil {
			t.Errorf("%.20q was recorded", id)
		}
	}
	// A crowd is brought down to the bound, the oldest first.
	for i := range MaxOperations + 5 {
		o := op
		o.ID = fmt.Sprintf("op-%d", i)
		value, _ := json.Marshal(o)
		if _, err := kv.Put(ctx, operationsPrefix+o.ID, string(value)); err != nil {
			t.Fatal(err)
		}
	}
	op.ID = "last"
	if err := h.Record(ctx, 1, op); err != nil {
		t.Fatal(err)
	}
	all, err := Operations(ctx, kv, 1000)
	if err != nil || len(all) != MaxOperations || all[0].ID != "last" || all[1].ID != fmt.Sprintf("op-%d", MaxOperations+4) {
		t.Errorf("%d operations, %v, first %s, %s", len(all), err, all[0].ID, all[1].ID)
	}
	if some, err := Operations(ctx, kv, 2); err != nil || len(some) != 2 {
		t.Errorf("two: %d, %v", len(some), err)
	}
	// One of another version is named, the others are given.
	if _, err := kv.Put(ctx, operationsPrefix+"odd", `{"id":"even"}`); err != nil {
		t.Fatal(err)
	}
	if all, err := Operations(ctx, kv, 10); err == nil || !strings.Contains(err.Error(), "/odd") || len(all) != 9 {
		t.Errorf("%d, %v", len(all), err)
	}
	release()
	op.ID = "too-late"
	if err := h.Record(ctx, 1, op); !errors.Is(err, lease.ErrLost) {
		t.Errorf("recorded without the Lease: %v", err)
	}
}

func testPolicy(t *testing.T, ctx context.Context, kv *clientv3.Client) {
	if p, err := LoadPolicy(ctx, kv); err != nil || p != (Policy{}) {
		t.Errorf("nothing was said: %+v, %v", p, err)
	}
	at := time.Unix(100, 0).UTC()
	active := func(p Policy) (Policy, error) {
		p.Mode = &Said{Value: Active, By: "anna", At: at}
		return p, nil
	}
	once := true
	if _, err := UpdatePolicy(ctx, kv, func(p Policy) (Policy, error) {
		if once {
			once = false
			if _, err := UpdatePolicy(ctx, kv, active); err != nil {
				t.Fatal(err)
			}
		}
		p.Paused = &membership.Say{Value: true, By: "ben", At: at}
		return p, nil
	}); err != nil {
		t.Fatal(err)
	}
	p, err := LoadPolicy(ctx, kv)
	if err != nil || p.Mode == nil || p.Mode.Value != Active || p.Paused == nil {
		t.Errorf("after two at once: %+v, %v", p, err)
	}
	to := membership.Policy{Mode: DryRun, Target: 3}
	p.Fill(&to)
	if to.Mode != Active || to.Target != 3 || to.Paused.By != "ben" {
		t.Errorf("%+v", to)
	}
	if _, err := UpdatePolicy(ctx, kv, func(p Policy) (Policy, error) {
		p.Mode = &Said{Value: "sometimes"}
		return p, nil
	}); err == nil || !strings.Contains(err.Error(), "sometimes") {
		t.Errorf("no such mode: %v", err)
	}
	// Always somebody else: it gives up and says so.
	if _, err := UpdatePolicy(ctx, kv, func(p Policy) (Policy, error) {
		_, err := kv.Put(ctx, policyKey, `{}`)
		return p, err
	}); !errors.Is(err, ErrConflict) {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{`{"mode":{"value":"ACTIVE","by":"x","at":"2026-03-01T00:00:00Z"}}`, `{"MODE":null}`, `{"paused":null,"paused":null}`, ``} {
		if _, err := kv.Put(ctx, policyKey, bad); err != nil {
			t.Fatal(err)
		}
		if p, err := LoadPolicy(ctx, kv); err == nil {
			t.Errorf("%s was taken for %+v", bad, p)
		}
	}
	if p, err := UpdatePolicy(ctx, kv, active); err != nil || p.Mode.Value != Active {
		t.Errorf("the owner repairs it: %+v, %v", p, err)
	}
}

func testRequest(t *testing.T, ctx context.Context, kv *clientv3.Client) {
	there := func() *membership.Request {
		t.Helper()
		q, err := LoadRequest(ctx, kv)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	if q := there(); q != nil {
		t.Errorf("nobody asked: %+v", q)
	}
	q := membership.Request{Out: "h3", In: "h4", By: "anna", At: time.Unix(100, 5).UTC(), Reason: "new rack"}
	if err := PutRequest(ctx, kv, q); err != nil {
		t.Fatal(err)
	}
	second := q
	second.By = "ben"
	var requested *RequestedError
	if err := PutRequest(ctx, kv, second); !errors.As(err, &requested) || !requested.There.Same(q) {
		t.Errorf("a second one: %v", err)
	}
	if loaded := there(); loaded == nil || !loaded.Same(q) {
		t.Errorf("%+v; want %+v", loaded, q)
	}
	if err := ClearRequest(ctx, kv, nil, second); err != nil || there() == nil {
		t.Errorf("another one was cleared: %v", err)
	}
	lost := errors.New("lost")
	if err := ClearRequest(ctx, kv, func(context.Context) (clientv3.Cmp, error) { return clientv3.Cmp{}, lost }, q); !errors.Is(err, lost) {
		t.Errorf("without the right: %v", err)
	}
	l := Leadership{key: "/gone", rev: 7}
	if err := ClearRequest(ctx, kv, l.Right(), q); !errors.Is(err, ErrConflict) || there() == nil {
		t.Errorf("by one that was deposed: %v", err)
	}
	for range 2 { // what is gone is gone
		if err := ClearRequest(ctx, kv, nil, q); err != nil || there() != nil {
			t.Errorf("%+v is there, %v", there(), err)
		}
	}
	for _, bad := range []membership.Request{
		{In: "h4", By: "x", At: q.At},
		{Out: "h3", By: "x", At: q.At},
		{Out: "h3", In: "h3", By: "x", At: q.At},
		{Out: "h3", In: "h4", At: q.At},
		{Out: "h3", In: "h4", By: "x"},
		{Out: "h3", In: "h4", By: membership.ByController, At: q.At},
		{Out: "h3", In: "h4\n", By: "x", At: q.At},
		{Out: "h3", In: "h4", By: "x", At: q.At, Reason: strings.Repeat("a", 501)},
	} {
		if err := PutRequest(ctx, kv, bad); err == nil || there() != nil {
			t.Errorf("taken: %+v", bad)
		}
	}
}

func testTarget(t *testing.T, ctx context.Context, kv *clientv3.Client) {
	if _, err := UpdatePolicy(ctx, kv, func(Policy) (Policy, error) {
		return Policy{Paused: &membership.Say{Value: true, By: "ben", At: time.Unix(90, 0).UTC()}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	is := func(target int, asked *membership.Request) {
		t.Helper()
		p, err := LoadPolicy(ctx, kv)
		if err != nil || p.Target == nil || p.Target.Value != target || p.Paused == nil {
			t.Errorf("%+v, %v; want target %d beside what was said before", p, err, target)
		}
		to := membership.Policy{Target: 3}
		if p.Fill(&to); to.Target != target {
			t.Errorf("filled in: %d", to.Target)
		}
		switch q, err := LoadRequest(ctx, kv); {
		case err != nil || (q == nil) != (asked == nil):
			t.Errorf("%+v, %v; want %+v", q, err, asked)
		case q != nil && !q.Same(*asked):
			t.Errorf("%+v; want %+v", q, asked)
		}
	}
	n := Number{Value: 5, By: "anna", At: time.Unix(100, 7).UTC(), Reason: "two racks"}
	if err := SetTarget(ctx, kv, n, true); err != nil {
		t.Fatal(err)
	}
	is(5, &membership.Request{Target: 5, By: "anna", At: n.At, Reason: "two racks"})
	swap := membership.Request{Out: "h3", In: "h4", By: "anna", At: n.At}
	var requested *RequestedError
	if err := PutRequest(ctx, kv, swap); !errors.As(err, &requested) || requested.There.Target != 5 {
		t.Errorf("a swap beside it: %v", err)
	}
	dead := membership.Request{Dead: "h3", Member: "beef", By: "anna", At: n.At}
	if err := PutRequest(ctx, kv, dead); err != nil {
		t.Errorf("the removal of a dead one takes its place: %v", err)
	}
	is(5, &dead)
	if err := PutRequest(ctx, kv, dead); !errors.As(err, &requested) || !requested.There.Same(dead) {
		t.Errorf("once: %v", err)
	}
	if err := ClearRequest(ctx, kv, nil, dead); err != nil {
		t.Fatal(err)
	}
	if err := SetTarget(ctx, kv, n, true); err != nil {
		t.Fatal(err)
	}
	regrade := membership.Request{Regrade: "h2", To: fitness.EtcdOnly, By: "anna", At: n.At}
	if err := PutRequest(ctx, kv, regrade); !errors.As(err, &requested) || requested.There.Target != 5 {
		t.Errorf("a step down beside it: %v", err)
	}
	regrade.To = fitness.Full
	if err := PutRequest(ctx, kv, regrade); err != nil {
		t.Errorf("a step up, for which it waits, takes its place: %v", err)
	}
	is(5, &regrade)
	if err := ClearRequest(ctx, kv, nil, regrade); err != nil {
		t.Fatal(err)
	}
	if err := SetTarget(ctx, kv, n, true); err != nil {
		t.Fatal(err)
	}
	n.Value, n.By = 7, "ben"
	if err := SetTarget(ctx, kv, n, true); err != nil {
		t.Errorf("another number replaces it: %v", err)
	}
	is(7, &membership.Request{Target: 7, By: "ben", At: n.At, Reason: "two racks"})
	n.Value = 3
	if err := SetTarget(ctx, kv, n, false); err != nil {
		t.Errorf("taken back: %v", err)
	}
	is(3, nil)
	for _, bad := range []int{0, 2, 4, 11} {
		if err := SetTarget(ctx, kv, Number{Value: bad, By: "x", At: n.At}, true); err == nil {
			t.Errorf("%d was taken", bad)
		}
	}
	if err := PutRequest(ctx, kv, swap); err != nil {
		t.Fatal(err)
	}
	n.Value = 5
	for _, ask := range []bool{true, false} {
		if err := SetTarget(ctx, kv, n, ask); !errors.As(err, &requested) || !requested.There.Same(swap) {
			t.Errorf("it took the place of a swap: %v", err)
		}
	}
	is(3, &swap)
	if err := ClearRequest(ctx, kv, nil, swap); err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(ctx, policyKey, `{"MODE":null}`); err != nil {
		t.Fatal(err)
	}
	if err := SetTarget(ctx, kv, n, true); err == nil || !strings.Contains(err.Error(), "suffrage mode dry-run") {
		t.Errorf("over what nobody can read: %v", err)
	}
	if _, err := kv.Delete(ctx, policyKey); err != nil {
		t.Fatal(err)
	}
}

// Whatever stands in etcd: it is read as it is written, or not at all.
func fuzzReader[T any](f *testing.F, read func([]byte) (T, error), most int, seeds ...string) {
	for _, s := range append(seeds, `{}`, `null`, `[`, `{} {}`, `{"a":1,"a":2}`, ``) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := read(data)
		if err != nil {
			return
		}
		if len(data) > most {
			t.Errorf("%d bytes were taken", len(data))
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("it cannot be written again: %v", err)
		}
		back, err := read(text)
		if err != nil {
			if len(text) > most {
				return // escapes made it longer
			}
			t.Fatalf("%s, written again %s: %v", data, text, err)
		}
		if again, _ := json.Marshal(back); string(again) != string(text) {
			t.Errorf("%s became %s", text, again)
		}
	})
}

func FuzzAnnotation(f *testing.F) {
	fuzzReader(f, readAnnotation, maxMark, Annotation{Member: "beef", Name: "h3", Peer: "http://h3:2380", Operation: "op", Term: 1, At: time.Unix(1, 0).UTC()}.write(),
		`{"member":"beef","MEMBER":"x","name":"h3","peer":"p","operation":"o","term":1,"at":"2026-03-01T00:00:00Z"}`)
}

func FuzzPolicy(f *testing.F) {
	fuzzReader(f, readPolicy, maxMark, `{"mode":{"value":"active","by":"anna","at":"2026-03-01T00:00:00Z"},"paused":{"value":true,"by":"b","at":"2026-03-01T00:00:00Z"}}`,
		`{"target":{"value":5,"by":"anna","at":"2026-03-01T00:00:00Z","reason":"two racks"}}`, `{"target":{"value":4}}`)
}

func FuzzRequest(f *testing.F) {
	fuzzReader(f, readRequest, maxMark, `{"out":"h3","in":"h4","by":"anna","at":"2026-03-01T00:00:00+02:00","reason":"new rack"}`, `{"out":"h3","in":"h3","by":"anna","at":"2026-03-01T00:00:00Z"}`,
		`{"target":5,"by":"anna","at":"2026-03-01T00:00:00Z"}`, `{"dead":"h3","member":"beef","by":"anna","at":"2026-03-01T00:00:00Z"}`)
}

func FuzzOperation(f *testing.F) {
	fuzzReader(f, readOperation, maxOperation, `{"id":"20260301t000000-1","out":"h3","in":"h4","worst_before":"inf","outcome":"completed","steps":[{"name":"join","begun":"2026-03-01T00:00:00Z"}],"snapshot":{"host":"h1","file":"a.db","revision":1,"size":2,"hash":"x"}}`,
		`{"id":"a/b"}`)
}
