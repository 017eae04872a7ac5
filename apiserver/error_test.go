package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// What a server answers is told apart from one that does not, or cannot, by the
// client's own errors.
func TestAway(t *testing.T) {
	code := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d}`, code)
	}))
	core := schema.GroupVersion{Version: "v1"}
	scheme := runtime.NewScheme()
	meta.AddToGroupVersion(scheme, core)
	c, err := New(&rest.Config{Host: server.URL}, core, scheme)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := func(ctx context.Context) error {
		if err := c.Verb("GET").Resource("nodes").Do(ctx).Error(); err != nil {
			return errors.Join(errors.New("etcd answers"), fmt.Errorf("marks: %w", c.Failed("read Nodes", err, "")))
		}
		return nil
	}
	for _, tc := range []struct {
		code int
		away bool
	}{
		{http.StatusOK, false}, {http.StatusUnauthorized, false}, {http.StatusForbidden, false}, {http.StatusTooManyRequests, false},
		{http.StatusInternalServerError, true}, {http.StatusServiceUnavailable, true}, {http.StatusGatewayTimeout, true},
	} {
		code = tc.code
		if err := ask(t.Context()); Away(err) != tc.away {
			t.Errorf("%d is away %t: %v", tc.code, !tc.away, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := ask(ended); err == nil || Away(err) {
		t.Errorf("the caller has ended: %v", err)
	}
	server.Close()
	if err := ask(t.Context()); !Away(err) {
		t.Errorf("nobody listens: %v", err)
	}
	if Away(nil) || Away(context.DeadlineExceeded) {
		t.Error("what no API server was asked is away")
	}
}
