package kube

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"suffrage/membership"
)

const (
	// refresh is how old what stands on a Node may get: figures in it, and AsOf.
	refresh = 10 * time.Minute
	// repair is after how long the Nodes are looked at again although there is
	// nothing new: one may have been made anew, or edited by hand.
	repair = time.Minute
	// callTimeout bounds one call.
	callTimeout = 10 * time.Second
	// maxWaiting bounds the Events that wait for the API server; the oldest go.
	maxWaiting = 500
	// maxWait is when an Event is too old to be told.
	maxWait = time.Hour
	// A Node has at most burst Events at once, and one more each perEvent.
	burst    = 25
	perEvent = time.Minute
	// longest is the longest pause after failures; each is twice the one before.
	longest = time.Minute
)

// Writer says on Nodes what the controller that leads measured, decided and does:
// the annotations of Reported, and Events with the Reasons.
//
// Nothing waits for it. Offer takes a round and never blocks on the API server; Run
// writes on its own, the newest round only, each Node when something changed and
// else every ten minutes, with a pause between two passes that grows while the API
// server fails. Annotations and Events fail apart from each other. Events that
// cannot be told wait, 500 of them, for an hour.
type Writer struct {
	Nodes *Nodes
	Host  string        // the controller's, which Events name
	Pace  time.Duration // the least pause between two passes
	Log   *slog.Logger

	mu      sync.Mutex // guards what Offer hands to Run
	before  *round
	says    map[string]said
	waiting []happening
	lost    int // Events, since the last pass
	limits  map[string]*rate.Limiter
	news    chan struct{}

	written map[string]said // by Node, as it stands there; Run's
	told    told
	trouble map[string]string // what failed last, by kind, which is logged once
}

// NewWriter makes one for a term of leadership.
func NewWriter(nodes *Nodes, host string, log *slog.Logger) *Writer {
	return &Writer{
		Nodes: nodes, Host: host, Pace: 5 * time.Second, Log: log,
		limits: map[string]*rate.Limiter{}, news: make(chan struct{}, 1),
		written: map[string]said{}, told: told{}, trouble: map[string]string{},
	}
}

// Offer takes one round in.
func (w *Writer) Offer(in membership.Inputs, d membership.Decision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := round{in, d}
	says, happened := sayOf(in, d), between(w.before, now)
	fresh := len(happened) > 0 || !maps.EqualFunc(says, w.says, func(a, b said) bool { return a.key == b.key })
	w.before, w.says = &now, says
	for _, h := range happened {
		l := w.limits[h.host]
		if l == nil {
			l = rate.NewLimiter(rate.Every(perEvent), burst)
			w.limits[h.host] = l
		}
		if !l.AllowN(in.Now, 1) {
			w.lost++
			continue
		}
		w.waiting = append(w.waiting, h)
	}
	if over := len(w.waiting) - maxWaiting; over > 0 {
		w.waiting, w.lost = w.waiting[over:], w.lost+over
	}
	if fresh {
		select {
		case w.news <- struct{}{}:
		default: // Run knows already
		}
	}
}

// Run writes until the context ends.
func (w *Writer) Run(ctx context.Context) error {
	pause := w.Pace
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.news:
		case <-time.After(repair):
		}
		err := w.pass(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if pause = 2 * pause; err == nil {
			pause = w.Pace
		} else {
			select { // try again without news
			case w.news <- struct{}{}:
			default:
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(pause, max(longest, w.Pace))):
		}
	}
}

// pass looks at the Nodes and writes what is to be written.
func (w *Writer) pass(ctx context.Context) error {
	w.mu.Lock()
	says, lost := w.says, w.lost
	w.lost = 0
	w.mu.Unlock()
	if lost > 0 {
		w.Log.Warn("events left out: too many", "count", lost)
	}
	if says == nil {
		return nil
	}
	read, cancel := context.WithTimeout(ctx, callTimeout)
	nodes, err := w.Nodes.all(read)
	cancel()
	w.note("Nodes", err)
	if err != nil {
		return err
	}
	err = w.annotate(ctx, nodes, says)
	w.note("annotations", err)
	eventErr := w.tell(ctx, nodes)
	w.note("events", eventErr)
	return errors.Join(err, eventErr)
}

// annotate goes on with the next Node where one fails, but not where none can be
// reached.
func (w *Writer) annotate(ctx context.Context, nodes []meta.PartialObjectMetadata, says map[string]said) error {
	var failed error
	there := map[string]bool{}
	for _, node := range nodes {
		there[node.Name] = true
		want, old := says[node.Name], w.written[node.Name]
		if old.stands(node) && old.key == want.key && want.at.Sub(old.at) < refresh {
			continue
		}
		call, cancel := context.WithTimeout(ctx, callTimeout)
		err := w.Nodes.annotate(call, node.Name, want)
		cancel()
		switch {
		case err == nil:
			w.written[node.Name] = want
		case apierrors.IsNotFound(err): // deleted since
		default:
			failed = w.Nodes.api.Failed("kube: annotate Node "+node.Name, err, "")
			if unreachable(err) {
				return failed
			}
		}
	}
	maps.DeleteFunc(w.written, func(node string, _ said) bool { return !there[node] })
	return failed
}

// tell makes Events of what waits, in order, until one fails.
func (w *Writer) tell(ctx context.Context, nodes []meta.PartialObjectMetadata) error {
	named := map[string]meta.PartialObjectMetadata{}
	for _, node := range nodes {
		named[node.Name] = node
	}
	for {
		w.mu.Lock()
		if len(w.waiting) == 0 {
			w.mu.Unlock()
			return nil
		}
		h := w.waiting[0]
		w.waiting = w.waiting[1:]
		late := w.before.in.Now.Sub(h.at) > maxWait
		w.mu.Unlock()
		node, ok := named[h.host]
		if !ok || late {
			continue
		}
		call, cancel := context.WithTimeout(ctx, callTimeout)
		err := w.Nodes.tell(call, w.told, node, w.Host, h)
		cancel()
		if err == nil {
			continue
		}
		err = w.Nodes.events.Failed("kube: make an Event on Node "+node.Name, err, "")
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			w.Log.Error("event not told", "reason", h.reason, "err", err) // it never will be
			continue
		}
		w.mu.Lock()
		w.waiting = append([]happening{h}, w.waiting...)
		w.mu.Unlock()
		return err
	}
}

// unreachable is an error that the next Node would give too.
func unreachable(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// note logs what fails when it begins to, and when it works again.
func (w *Writer) note(what string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch old := w.trouble[what]; {
	case text != "" && old == "":
		w.Log.Warn("not told in Kubernetes", "what", what, "err", err)
	case text == "" && old != "":
		w.Log.Info("told in Kubernetes again", "what", what)
	}
	w.trouble[what] = text
}
