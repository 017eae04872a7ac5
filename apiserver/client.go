// Package apiserver is how Suffrage reaches a Kubernetes API server: the settings,
// a REST client of client-go's for one group of the API, and what failed calls
// mean. The typed clientset would link every group that Kubernetes has.
//
// It holds to this: no write is sent twice, answers are bounded, and a connection
// that nobody answers on costs the one call that was on it.
package apiserver

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// maxAnswer bounds an answer, in bytes: an object has at most 256 KiB of
// annotations, and managedFields beside them.
const maxAnswer = 2 << 20

// Client is one group of the API. It connects when first used.
type Client struct {
	rest *rest.RESTClient
	http *http.Client
	host string // for errors
}

// New uses the server that cfg names. scheme has the group's types. Close it when
// done.
func New(cfg *rest.Config, group schema.GroupVersion, scheme *runtime.Scheme) (*Client, error) {
	own := rest.CopyConfig(cfg)
	own.APIPath = "/apis"
	if group.Group == "" {
		own.APIPath = "/api"
	}
	own.GroupVersion = &group
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	own.QPS = -1 // a renewal must not queue behind anything; there are few calls
	own.WarningHandlerWithContext = rest.NoWarnings{}
	// HTTP/2 would send every call over one connection, and keep that for 45 s
	// after the host at its other end died: longer than a holder of the Lease has
	// at K3s's election timeout. In HTTP/1.1 a call that timed out closes its
	// connection.
	own.NextProtos = []string{"http/1.1"}
	own.Wrap(func(rt http.RoundTripper) http.RoundTripper { return bounded{rt} })
	httpClient, err := rest.HTTPClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("apiserver: client for %s: %w", cfg.Host, err)
	}
	c, err := rest.RESTClientForConfigAndClient(own, httpClient)
	if err != nil {
		return nil, fmt.Errorf("apiserver: client for %s: %w", cfg.Host, err)
	}
	return &Client{rest: c, http: httpClient, host: cfg.Host}, nil
}

// Close closes the connections.
func (c *Client) Close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }

// Verb begins a request, which is sent once: client-go by itself would send it
// again after an answer that says Retry-After, and a writer would take its own
// first write for somebody else's.
func (c *Client) Verb(verb string) *rest.Request { return c.rest.Verb(verb).MaxRetries(0) }

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
