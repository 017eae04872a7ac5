package kubernetes

import (
	"fmt"
	"net/http"

	coordination "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// maxAnswer bounds an answer of the API server, in bytes: a Lease has at most
// 256 KiB of annotations, and managedFields beside them.
const maxAnswer = 2 << 20

// New uses the API server that cfg names. It connects when first used; Close it
// when done.
//
// It is client-go's REST client with this one API group: the typed clientset
// links every group that Kubernetes has.
func New(cfg *rest.Config, namespace string) (*Store, error) {
	if err := (Config{Namespace: namespace}).Validate(); err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := coordination.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	own := rest.CopyConfig(cfg)
	own.APIPath = "/apis"
	own.GroupVersion = &coordination.SchemeGroupVersion
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	own.QPS = -1 // a renewal must not queue behind anything; there are few calls
	own.WarningHandlerWithContext = rest.NoWarnings{}
	// HTTP/2 would send every call over one connection, and keep that for 45 s
	// after the host at its other end died: longer than a holder has at K3s's
	// election timeout. In HTTP/1.1 a call that timed out closes its connection.
	own.NextProtos = []string{"http/1.1"}
	own.Wrap(func(rt http.RoundTripper) http.RoundTripper { return bounded{rt} })
	httpClient, err := rest.HTTPClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("lease: client for %s: %w", cfg.Host, err)
	}
	c, err := rest.RESTClientForConfigAndClient(own, httpClient)
	if err != nil {
		return nil, fmt.Errorf("lease: client for %s: %w", cfg.Host, err)
	}
	return &Store{rest: c, http: httpClient, host: cfg.Host, namespace: namespace}, nil
}

// Close closes the connections.
func (s *Store) Close() { utilnet.CloseIdleConnectionsFor(s.http.Transport) }

type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(req)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	}
	return resp, err
}

// WrappedRoundTripper is how Close finds the connections.
func (b bounded) WrappedRoundTripper() http.RoundTripper { return b.RoundTripper }
