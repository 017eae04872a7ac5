package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// Reporter is the reportingController of all Events.
	Reporter = "suffrage.io/controller"
	// eventsIn is where Events of objects without a namespace have to be.
	eventsIn = "default"
	// maxNote is the API server's bound, in bytes.
	maxNote = 1024
)

// series is an Event whose repeats are counted.
type series struct {
	name  string
	count int32
	at    time.Time
}

// told are the Events of this controller that repeats are counted in. A repeat
// more than an hour later is an Event of its own, as the API server forgot the
// first.
type told map[string]series

const remembered = 45 * time.Minute

// forget drops what is over.
func (t told) forget(now time.Time) {
	for same, s := range t {
		if now.Sub(s.at) > remembered {
			delete(t, same)
		}
	}
}

// tell makes an Event on the Node, or counts it in the one that says the same.
func (n *Nodes) tell(ctx context.Context, t told, node meta.PartialObjectMetadata, instance string, h happening) error {
	t.forget(h.at)
	if s, ok := t[h.same]; ok {
		s.count, s.at = s.count+1, h.at
		err := n.count(ctx, s)
		if err == nil {
			t[h.same] = s
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		delete(t, h.same) // somebody deleted it
	}
	name := eventName(node, h)
	err := n.create(ctx, name, node, instance, h)
	if err == nil || apierrors.IsAlreadyExists(err) { // told already, maybe by another controller
		t[h.same] = series{name, 1, h.at}
		return nil
	}
	return err
}

// eventName is the same for the same happening, whoever tells it.
func eventName(node meta.PartialObjectMetadata, h happening) string {
	sum := sha256.Sum256([]byte(string(node.UID) + " " + h.reason + " " + h.id))
	return cut(node.Name, 200) + "." + hex.EncodeToString(sum[:8])
}

func (n *Nodes) create(ctx context.Context, name string, node meta.PartialObjectMetadata, instance string, h happening) error {
	kind := core.EventTypeNormal
	if h.warning {
		kind = core.EventTypeWarning
	}
	body, err := json.Marshal(events.Event{
		TypeMeta:            meta.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "Event"},
		ObjectMeta:          meta.ObjectMeta{Name: name, Namespace: eventsIn},
		EventTime:           meta.NewMicroTime(h.at),
		ReportingController: Reporter, ReportingInstance: cut(instance, 128),
		Action: actions[h.reason], Reason: h.reason, Type: kind,
		Regarding: core.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
		Note:      cut(printable(h.note), maxNote),
	})
	if err != nil {
		return err
	}
	return n.events.Verb("POST").Namespace(eventsIn).Resource("events").SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
}

func (n *Nodes) count(ctx context.Context, s series) error {
	body, err := json.Marshal(map[string]any{"series": events.EventSeries{Count: s.count, LastObservedTime: meta.NewMicroTime(s.at)}})
	if err != nil {
		return err
	}
	return n.events.Verb("PATCH").Namespace(eventsIn).Resource("events").Name(s.name).
		SetHeader("Content-Type", string(types.MergePatchType)).Body(body).Do(ctx).Error()
}

// annotate makes the Node say what is to stand on it.
func (n *Nodes) annotate(ctx context.Context, node string, s said) error {
	body, err := json.Marshal(s.patch())
	if err != nil {
		return err
	}
	return n.api.Verb("PATCH").Resource("nodes").Name(node).SetHeader("Content-Type", string(types.MergePatchType)).
		SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").Body(body).Do(ctx).Error()
}
