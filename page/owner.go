package page

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"suffrage/identity"
)

// Owner carries out what the owner says through the page.
type Owner interface {
	// Ask gives what would be done, as the command of that name says it. An error says
	// why nothing would be done.
	Ask(ctx context.Context, o Order) (Question, error)
	// Do does it, and gives what the command prints. by says who, and from where.
	Do(ctx context.Context, o Order, by, reason string) (string, error)
}

// Order is one thing that the owner may say.
type Order struct {
	Verb string
	Host string // empty for pause and resume; the one that loses its vote in a swap
	In   string // of a swap: the one that gets it
}

// Question is what would be done.
type Question struct {
	Lines []string
	// Key has to be the same when it is done: the acts, without figures that are others
	// each round.
	Key string
	// Not is why it cannot be done now although this is what it would do: it is shown,
	// and nobody is asked to confirm it.
	Not error
}

// The verbs, each as its command is called.
var verbs = []string{"pin", "unpin", "eligible", "ineligible", "pause", "resume", "swap"}

// String is the order as the command line has it.
func (o Order) String() string {
	return strings.TrimSpace(strings.Join([]string{o.Verb, o.Host, o.In}, " "))
}

const (
	maxForm = 4 << 10          // bytes of what is sent
	maxName = 100              // bytes of who says it
	shownIs = 10 * time.Minute // how long what was shown stands
)

// seal ties an order to the question that was shown for it: a form that this process
// has not made, one for another question, and one that lay about, do nothing.
type seal struct{ key []byte }

func newSeal() seal {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return seal{key}
}

func (s seal) on(o Order, key string, at time.Time) string {
	m := hmac.New(sha256.New, s.key)
	fmt.Fprintf(m, "%q %q %q %q %d", o.Verb, o.Host, o.In, key, at.Unix())
	return strconv.FormatInt(at.Unix(), 10) + "." + base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

func (s seal) holds(sealed string, o Order, key string, now time.Time) bool {
	stamp, _, _ := strings.Cut(sealed, ".")
	sec, err := strconv.ParseInt(stamp, 10, 64)
	at := time.Unix(sec, 0)
	return err == nil && now.Sub(at) < shownIs && !at.After(now) && hmac.Equal([]byte(sealed), []byte(s.on(o, key, at)))
}

// asking is what the page of one order shows.
type asking struct {
	Order
	Lines  []string
	Seal   string
	Back   string
	By     string
	Reason string
	Done   string // what was done, once it was
}

func orderOf(r *http.Request) (Order, error) {
	o := Order{r.FormValue("verb"), r.FormValue("host"), r.FormValue("in")}
	if !slices.Contains(verbs, o.Verb) {
		return o, fmt.Errorf("there is no %.50q to say; allowed: %s", o.Verb, strings.Join(verbs, ", "))
	}
	return o, nil
}

// ask shows what an order would do, and changes nothing.
func (s *server) ask(w http.ResponseWriter, r *http.Request) {
	o, err := orderOf(r)
	if err != nil {
		s.show(w, http.StatusBadRequest, asking{Order: o}, Question{}, err)
		return
	}
	q, err := s.Owner.Ask(r.Context(), o)
	if err != nil {
		s.show(w, http.StatusConflict, asking{Order: o}, Question{}, err)
		return
	}
	s.show(w, http.StatusOK, asking{Order: o}, q, nil)
}

// do does what was shown, and only that.
func (s *server) do(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "page: "+err.Error(), http.StatusBadRequest)
		return
	}
	o, err := orderOf(r)
	a := asking{Order: o, By: r.PostForm.Get("by"), Reason: r.PostForm.Get("reason")}
	if err != nil {
		s.show(w, http.StatusBadRequest, a, Question{}, err)
		return
	}
	q, err := s.Owner.Ask(r.Context(), o)
	switch {
	case err != nil:
		s.show(w, http.StatusConflict, a, Question{}, err)
		return
	case q.Not != nil:
		s.show(w, http.StatusConflict, a, q, nil)
		return
	case !s.seal.holds(r.PostForm.Get("seal"), o, q.Key, time.Now()):
		s.show(w, http.StatusConflict, a, q, errOtherQuestion)
		return
	case a.By == "" || len(a.By) > maxName:
		s.show(w, http.StatusBadRequest, a, q, fmt.Errorf("nothing was done: say who you are, in up to %d bytes, since the record has it", maxName))
		return
	}
	by := a.By + ", through the page on " + s.Host + " from " + from(r)
	a.Done, err = s.Owner.Do(r.Context(), o, by, a.Reason)
	if err != nil {
		s.Log.Warn("the owner's word through the page failed", "order", o.String(), "by", by, "err", err)
		s.show(w, http.StatusConflict, a, q, err)
		return
	}
	s.Log.Info("the owner's word through the page", "order", o.String(), "by", by, "reason", a.Reason)
	s.show(w, http.StatusOK, a, Question{}, nil)
}

var errOtherQuestion = errors.New("nothing was done: what you saw was shown more than ten minutes ago, or by another process, or is not what would be done now; this is")

// show is the page of one order: what would be done with a form to say yes, or what was.
func (s *server) show(w http.ResponseWriter, code int, a asking, q Question, err error) {
	v := shown{Model: Model{Host: s.Host, now: time.Now()}, Page: "ask", Title: a.Order.String(), Ask: &a}
	a.Back = "/"
	if a.Host != "" && a.In == "" {
		a.Back = "/hosts/" + url.PathEscape(a.Host)
	}
	if a.Lines = q.Lines; len(q.Lines) > 0 && q.Not == nil {
		a.Seal = s.seal.on(a.Order, q.Key, v.now)
	}
	if q.Not != nil {
		v.Error = q.Not.Error()
	}
	if err != nil {
		v.Error = err.Error()
	}
	s.render(w, code, v)
}

// from is where a request comes from: its address, and the key that it has shown where
// keys are asked for.
func from(r *http.Request) string {
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		if f, err := identity.FingerprintOf(r.TLS.PeerCertificates[0].PublicKey); err == nil {
			return f.String() + " at " + r.RemoteAddr
		}
	}
	return r.RemoteAddr
}
