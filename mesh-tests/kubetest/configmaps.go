package kubetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"suffrage/mesh-tests/history"
)

const (
	updaters  = 3
	updated   = 3 // ConfigMaps that are put and read
	between   = 10 * time.Millisecond
	callLimit = 30 * time.Second
	maxErrors = 10
)

// ConfigMaps are clients of the server that put, read and create ConfigMaps in one
// namespace for as long as Run lasts. Each call is made once, as kubectl makes it:
// what fails has failed.
type ConfigMaps struct {
	Namespace string

	http    *http.Client
	at      string
	mu      sync.Mutex
	began   time.Time
	history history.History
	seen    history.Writes
	good    time.Duration // the newest acknowledged write
	gapAt   time.Duration // when the longest gap ended
	made    []string
	errs    []string
}

// ConfigMaps makes the namespace.
func (s *Server) ConfigMaps(namespace string) *ConfigMaps {
	s.t.Helper()
	s.Namespace(s.t, namespace)
	client, err := rest.HTTPClientFor(s.Config(Admin))
	if err != nil {
		s.t.Fatal(err)
	}
	c := &ConfigMaps{Namespace: namespace, http: client, at: "https://" + s.address.String() + "/api/v1/namespaces/" + namespace + "/configmaps"}
	for k := range updated {
		s.Create(s.t, "/api/v1/namespaces/"+namespace+"/configmaps", object(fmt.Sprintf("put-%d", k), ""))
	}
	return c
}

func object(name, value string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"v":%q}}`, name, value)
}

// Run makes calls until ctx ends, and gives what was seen; Errors has the first
// texts of what failed.
func (c *ConfigMaps) Run(ctx context.Context) (history.History, history.Writes) {
	c.began = time.Now()
	var all sync.WaitGroup
	for i := range updaters {
		all.Go(func() { c.update(ctx, i) })
	}
	all.Go(func() { c.create(ctx) })
	all.Wait()
	for k := range updated {
		c.get(context.WithoutCancel(ctx), 0, fmt.Sprintf("put-%d", k))
	}
	c.http.CloseIdleConnections()
	return c.history, c.seen
}

// GapEnded is when the longest time without a write ended.
func (c *ConfigMaps) GapEnded() time.Time { return c.began.Add(c.gapAt) }

// Errors are the first texts of what failed.
func (c *ConfigMaps) Errors() []string { return c.errs }

// Missing are those that were created and that a list does not have. With cached
// the list is that of the server's watch cache.
func (c *ConfigMaps) Missing(ctx context.Context, cached bool) ([]string, error) {
	from := c.at
	if cached {
		from += "?resourceVersion=0"
	}
	code, text := c.call(ctx, http.MethodGet, from, "")
	if code != http.StatusOK {
		return nil, fmt.Errorf("list ConfigMaps: %d %s", code, text)
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
		}
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, i := range list.Items {
		there[i.Metadata.Name] = true
	}
	var missing []string
	for _, name := range c.made {
		if !there[name] {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

func (c *ConfigMaps) update(ctx context.Context, number int) {
	rng := rand.New(rand.NewSource(int64(number)))
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("put-%d", rng.Intn(updated))
		if rng.Intn(3) == 0 {
			c.get(ctx, number, key)
		} else {
			value := fmt.Sprintf("%d-%d", number, n)
			c.write(ctx, number, http.MethodPut, "/"+key, key, value, http.StatusOK)
		}
		time.Sleep(between)
	}
}

func (c *ConfigMaps) create(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		key := fmt.Sprintf("made-%06d", n)
		if c.write(ctx, updaters, http.MethodPost, "", key, "x", http.StatusCreated) {
			c.mu.Lock()
			c.made = append(c.made, key)
			c.mu.Unlock()
		}
		time.Sleep(between)
	}
}

// write is one put or post. It is not cut off by the end: what is under way then
// is waited for.
func (c *ConfigMaps) write(ctx context.Context, number int, method, path, key, value string, want int) bool {
	o := history.Operation{Client: number, Key: key, Put: value, Call: time.Since(c.began)}
	code, text := c.call(context.WithoutCancel(ctx), method, c.at+path, object(key, value))
	o.Return, o.Unknown = time.Since(c.began), code != want
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history = append(c.history, o)
	if o.Unknown {
		c.seen.Failed++
		if len(c.errs) < maxErrors {
			c.errs = append(c.errs, fmt.Sprintf("%s %s after %v: %d %s", method, key, o.Return-o.Call, code, text))
		}
		return false
	}
	if c.seen.Acknowledged++; c.seen.Acknowledged > 1 {
		if gap := o.Return - c.good; gap > c.seen.Gap {
			c.seen.Gap, c.gapAt = gap, o.Return
		}
	}
	c.good = max(c.good, o.Return)
	c.seen.Slowest = max(c.seen.Slowest, o.Return-o.Call)
	return true
}

func (c *ConfigMaps) get(ctx context.Context, number int, key string) {
	o := history.Operation{Client: number, Key: key, Call: time.Since(c.began)}
	code, text := c.call(context.WithoutCancel(ctx), http.MethodGet, c.at+"/"+key, "")
	o.Return = time.Since(c.began)
	var got struct{ Data struct{ V string } }
	o.Unknown = code != http.StatusOK || json.Unmarshal(text, &got) != nil
	o.Got = got.Data.V
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history = append(c.history, o)
	if o.Unknown && len(c.errs) < maxErrors {
		c.errs = append(c.errs, fmt.Sprintf("get %s after %v: %d %s", key, o.Return-o.Call, code, text))
	}
}

// call gives the status, 0 where there was no answer.
func (c *ConfigMaps) call(ctx context.Context, method, url, body string) (int, []byte) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, []byte(err.Error())
	}
	req.Header.Set("Content-Type", plainJSON)
	r, err := c.http.Do(req)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return 0, []byte(err.Error())
	}
	return r.StatusCode, text
}
