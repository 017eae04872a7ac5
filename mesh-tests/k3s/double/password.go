package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Node's password is made by its host at the first start and kept in a file.
// The first server that is asked for a certificate in the Node's name keeps a hash
// of it in a Secret, and from then on nobody registers under that name without the
// password: K3s's pkg/nodepassword. K3s forgets it with the Node; here it is kept.
const (
	pathKubelet  = "/v1-k3s/serving-kubelet.crt"
	headerName   = "k3s-Node-Name"
	headerSecret = "k3s-Node-Password"
	secretSpace  = "kube-system"
	secretKey    = "hash"
)

// rejected is what K3s's agent logs, and tries again.
const rejected = "Node password rejected, duplicate hostname or contents of '/etc/rancher/node/password' may not match server node-passwd entry, " +
	"try enabling a unique node name with the --with-node-id flag"

func secretOf(node string) string { return node + ".node-password.k3s" }

// nodePassword is what the file says; a new one is made and kept where there is none.
func nodePassword(dir string) (string, error) {
	file := filepath.Join(dir, "password")
	content, err := os.ReadFile(file)
	if err == nil {
		return string(bytes.TrimSpace(content)), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	var some [16]byte
	if _, err := rand.Read(some[:]); err != nil {
		return "", err
	}
	made := hex.EncodeToString(some[:])
	return made, write(file, []byte(made+"\n"))
}

// identify asks for the kubelet's certificate, for which the password has to be
// right. The certificate itself has no use here.
func (b *balancer) identify(ctx context.Context, o Options) error {
	secret, err := nodePassword(o.NodeDir)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://any"+pathKubelet, nil)
	if err != nil {
		return err
	}
	req.Header.Set(headerName, o.NodeName)
	req.Header.Set(headerSecret, secret)
	resp, err := b.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%s: %s", pathKubelet, rejected)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s: %s", pathKubelet, resp.Status, bytes.TrimSpace(said))
	}
	return nil
}

// kubelet answers identify.
func (s *supervisor) kubelet(w http.ResponseWriter, r *http.Request) {
	given := []byte(r.Header.Get("Authorization"))
	if subtle.ConstantTimeCompare(given, []byte("Bearer "+adminToken(s.password))) != 1 {
		http.Error(w, "not authorized", http.StatusUnauthorized)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
	defer cancel()
	node, secret := r.Header.Get(headerName), r.Header.Get(headerSecret)
	if node == "" || secret == "" {
		http.Error(w, "node name and password are required", http.StatusBadRequest)
		return
	}
	err := s.ensure(ctx, node, secret)
	switch {
	case errors.Is(err, errRejected):
		http.Error(w, err.Error(), http.StatusForbidden)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

var errRejected = errors.New("hash does not match")

// ensure keeps the hash of a Node's first password, and compares later ones with it.
// K3s's hash is a slow one with salt; nobody but the double reads this.
func (s *supervisor) ensure(ctx context.Context, node, secret string) error {
	api, err := s.kube.client()
	if err != nil {
		return err
	}
	want := []byte(hash([]byte(secret)))
	var kept core.Secret
	err = api.core.Get().Namespace(secretSpace).Resource("secrets").Name(secretOf(node)).Do(ctx).Into(&kept)
	switch {
	case apierrors.IsNotFound(err):
		immutable := true
		kept = core.Secret{ObjectMeta: meta.ObjectMeta{Namespace: secretSpace, Name: secretOf(node)}, Immutable: &immutable, Data: map[string][]byte{secretKey: want}}
		return api.core.Post().Namespace(secretSpace).Resource("secrets").Body(&kept).Do(ctx).Error()
	case err != nil:
		return err
	case subtle.ConstantTimeCompare(kept.Data[secretKey], want) != 1:
		return fmt.Errorf("unable to verify password for node %s: %w", node, errRejected)
	}
	return nil
}
