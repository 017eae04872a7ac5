package kubetest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"testing"
	"time"
)

// Kinds of patches.
const (
	mergePatch = "application/merge-patch+json"
	plainJSON  = "application/json"
)

// client is what the owner has, as simple as can be: a connection per call.
func (s *Server) client() *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.ca)
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
}

func (s *Server) call(method, path, kind string, body []byte) (int, []byte) {
	return s.as(Admin, method, path, kind, body)
}

// as gives the status, 0 where there was no answer.
func (s *Server) as(user, method, path, kind string, body []byte) (int, []byte) {
	req, err := http.NewRequestWithContext(context.Background(), method, "https://"+s.address.String()+path, bytes.NewReader(body))
	if err != nil {
		return 0, []byte(err.Error())
	}
	req.Header.Set("Authorization", "Bearer "+token(user))
	req.Header.Set("Content-Type", kind)
	r, err := s.http.Do(req)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
	if err != nil {
		return 0, []byte(err.Error())
	}
	return r.StatusCode, text
}

// Create posts an object as JSON to the path of its kind, as Admin, and gives
// whether it was new.
func (s *Server) Create(t testing.TB, path, object string) bool {
	t.Helper()
	code, text := s.call(http.MethodPost, path, plainJSON, []byte(object))
	if code != http.StatusCreated && code != http.StatusConflict {
		t.Fatalf("create at %s: %d %s", path, code, text)
	}
	return code == http.StatusCreated
}

// Patch changes the object at a path by a JSON merge patch, as Admin.
func (s *Server) Patch(t testing.TB, path, patch string) {
	t.Helper()
	if code, text := s.call(http.MethodPatch, path, mergePatch, []byte(patch)); code != http.StatusOK {
		t.Fatalf("patch %s: %d %s", path, code, text)
	}
}

// Put replaces the object at a path, as Admin.
func (s *Server) Put(t testing.TB, path, object string) {
	t.Helper()
	if code, text := s.call(http.MethodPut, path, plainJSON, []byte(object)); code != http.StatusOK {
		t.Fatalf("put %s: %d %s", path, code, text)
	}
}

// Get reads the object at a path, as Admin.
func (s *Server) Get(t testing.TB, path string) []byte {
	t.Helper()
	code, text := s.call(http.MethodGet, path, "", nil)
	if code != http.StatusOK {
		t.Fatalf("get %s: %d %s", path, code, text)
	}
	return text
}

// Delete deletes the object at a path, as Admin, if it is there.
func (s *Server) Delete(t testing.TB, path string) {
	t.Helper()
	if code, text := s.call(http.MethodDelete, path, "", nil); code != http.StatusOK && code != http.StatusNotFound {
		t.Fatalf("delete %s: %d %s", path, code, text)
	}
}

// Namespace makes one.
func (s *Server) Namespace(t testing.TB, name string) {
	t.Helper()
	s.Create(t, "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+name+`"}}`)
}

// As is the status that a user gets who reads a path.
func (s *Server) As(t testing.TB, user, path string) int {
	t.Helper()
	code, text := s.as(user, http.MethodGet, path, "", nil)
	if code == 0 {
		t.Fatalf("%s reads %s: %s", user, path, text)
	}
	return code
}

// PatchAs is the status and the text that a user gets who patches a path.
func (s *Server) PatchAs(t testing.TB, user, path, patch string) (int, string) {
	t.Helper()
	code, text := s.as(user, http.MethodPatch, path, mergePatch, []byte(patch))
	if code == 0 {
		t.Fatalf("%s patches %s: %s", user, path, text)
	}
	return code, string(text)
}
