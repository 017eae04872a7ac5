package identity_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"suffrage/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newKey(t testing.TB) *identity.Key {
	t.Helper()
	k, err := identity.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func write(t *testing.T, path string, data []byte, mode fs.FileMode) string {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, data, mode), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestKeySurvivesItsFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "host.key")
	k := newKey(t)
	if err := k.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := identity.LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.Fingerprint() != k.Fingerprint() {
		t.Errorf("read %s, saved %s", got, k)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, error %v: want 0600", info.Mode(), err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%v, %v: want nothing beside the key", left, err)
	}
}

func TestKeyIsNeverOverwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "host.key")
	// Two at once: exactly one wins, and the file is the winner's.
	keys, errs := []*identity.Key{newKey(t), newKey(t)}, make([]error, 2)
	var wg sync.WaitGroup
	for i, k := range keys {
		wg.Go(func() { errs[i] = k.Save(path) })
	}
	wg.Wait()
	winner := 0
	if errs[0] != nil {
		winner = 1
	}
	if errs[winner] != nil || !errors.Is(errs[1-winner], fs.ErrExist) {
		t.Fatalf("errors %v: want one nil and one fs.ErrExist", errs)
	}
	got, err := identity.LoadKey(path)
	if err != nil || got.Fingerprint() != keys[winner].Fingerprint() {
		t.Errorf("the file holds %v (%v), the winner was %v", got, err, keys[winner])
	}
	want := "identity: save key " + path + ": file already exists: a key is never overwritten; move the old one away if it is no longer in any roster"
	if err := keys[1-winner].Save(path); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestLoadKeyRefuses(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := newKey(t).Save(in("good")); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(in("good"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(syscall.Mkfifo(in("pipe"), 0o600), os.Symlink(in("good"), in("link"))); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.LoadKey(in("link")); err != nil {
		t.Errorf("a link to a good key (as Kubernetes mounts secrets): %v", err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	refused := identity.ErrKeyFile.Error()
	for _, tt := range []struct{ name, path, want string }{
		{"readable by the group", write(t, in("group"), good, 0o640), refused + ": mode 0640 is wider than 0600; if nobody else can have read it, run: chmod 0600 " + in("group")},
		{"writable by all, in a path to quote", write(t, in("it's all"), good, 0o602), refused + ": mode 0602 is wider than 0600; if nobody else can have read it, run: chmod 0600 '" + dir + `/it'\''s all'`},
		{"a directory", dir, refused + ": not a regular file (d---------)"},
		{"a pipe, without waiting for its writer", in("pipe"), refused + ": not a regular file (p---------)"},
		{"absent", in("none"), "file does not exist: 'suffrage identity init' makes one"},
		{"empty", write(t, in("empty"), nil, 0o600), refused + ": not one PEM block of type PRIVATE KEY"},
		{"cut short", write(t, in("short"), good[:len(good)/2], 0o600), refused + ": not one PEM block of type PRIVATE KEY"},
		{"two keys", write(t, in("two"), append(good[:len(good):len(good)], good...), 0o600), refused + ": not one PEM block of type PRIVATE KEY"},
		{"a PEM block of something else", write(t, in("junk"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")}), 0o600), refused + ": its PEM block holds no PKCS #8 key"},
		{"a key of another kind", write(t, in("ec"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600), refused + ": it holds a key of type *ecdsa.PrivateKey, want ed25519"},
		{"endless", write(t, in("big"), bytes.Repeat(good, 1000), 0o600), refused + ": larger than 64 KiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := identity.LoadKey(tt.path)
			if want := "identity: read key " + tt.path + ": " + tt.want; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestKeyShowsNoSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "host.key")
	k := newKey(t)
	if err := k.Save(path); err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(path)
	block, _ := pem.Decode(data)
	seed := block.Bytes[len(block.Bytes)-32:]
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", k, "value", *k)
	js, _ := json.Marshal(struct{ Key *identity.Key }{k})
	shown := log.String() + string(js) + fmt.Sprintf("%v %+v %#v %s %x %d %q %v", k, k, k, k, k, k, k, struct{ K *identity.Key }{k}) + fmt.Sprint(*k)
	for _, secret := range []string{fmt.Sprintf("%x", seed[:8]), strings.Trim(fmt.Sprint(seed[:8]), "[]"), string(data[40:60])} {
		if strings.Contains(shown, secret) {
			t.Errorf("the secret is in: %s", shown)
		}
	}
	if !strings.Contains(shown, k.Fingerprint().String()) {
		t.Errorf("no fingerprint in: %s", shown)
	}
}
