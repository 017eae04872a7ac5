package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"suffrage/identity"
)

// runIdentity runs one identity command as main would.
func runIdentity(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	root := &cobra.Command{Use: "suffrage", SilenceErrors: true, SilenceUsage: true}
	root.PersistentFlags().StringP("output", "o", "text", "")
	root.AddCommand(newIdentityCmd())
	var out, notes bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&notes)
	root.SetIn(strings.NewReader(stdin))
	root.SetArgs(append([]string{"identity"}, args...))
	err = root.Execute()
	return out.String(), notes.String(), err
}

func mustIdentity(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, notes, err := runIdentity(t, stdin, args...)
	if err != nil {
		t.Fatalf("%v: %v (%s)", args, err, notes)
	}
	return out
}

// The way of an owner from two hosts without anything to a checked certificate.
func TestIdentityFromKeyToCertificate(t *testing.T) {
	tmp := t.TempDir()
	h1, h2, ca := filepath.Join(tmp, "h1"), filepath.Join(tmp, "h2"), filepath.Join(tmp, "ca")
	roster := filepath.Join(tmp, "roster.yaml")
	entries := mustIdentity(t, "", "init", "--dir", h1, "--host", "h1", "--address", "100.64.0.1") +
		mustIdentity(t, "", "init", "--dir", h2, "--host", "h2", "--address", "fd7a::2", "--port", "7500")
	if err := os.WriteFile(roster, []byte("hosts:\n"+entries), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.LoadRoster(roster); err != nil {
		t.Fatalf("the printed entries make no roster: %v", err)
	}
	mustIdentity(t, "", "ca", "init", "--dir", ca)
	csr := mustIdentity(t, "", "request", "--dir", h2, "--roster", roster)
	crt := mustIdentity(t, csr, "sign", "-", "--dir", ca, "--roster", roster)
	if err := os.WriteFile(filepath.Join(h2, "host.crt"), []byte(crt), 0o644); err != nil {
		t.Fatal(err)
	}
	out := mustIdentity(t, "", "check", "--dir", h2, "--roster", roster)
	if !strings.HasPrefix(out, "ok: ") || !strings.Contains(out, "not checked: who signed it") {
		t.Errorf("check: %s", out)
	}
	var shown struct {
		Fingerprint string
		Host        struct{ Name, Address string }
		Entry       string
		Certificate struct {
			NotAfter string `json:"not_after"`
		}
	}
	if err := json.Unmarshal([]byte(mustIdentity(t, "", "show", "--dir", h2, "--roster", roster, "-o", "json")), &shown); err != nil {
		t.Fatal(err)
	}
	if shown.Host.Name != "h2" || shown.Host.Address != "fd7a::2" || !strings.Contains(entries, shown.Entry) ||
		!strings.Contains(entries, shown.Fingerprint) || shown.Certificate.NotAfter == "" {
		t.Errorf("show: %+v", shown)
	}
	// The host moves: its certificate no longer fits.
	moved := strings.Replace("hosts:\n"+entries, "fd7a::2", "fd7a::3", 1)
	if err := os.WriteFile(roster, []byte(moved), 0o644); err != nil {
		t.Fatal(err)
	}
	out, _, err := runIdentity(t, "", "check", "--dir", h2, "--roster", roster)
	if err == nil || !strings.HasSuffix(err.Error(), ": certificate-names") || !strings.Contains(out, "lacks fd7a::3") {
		t.Errorf("check after the move: %v\n%s", err, out)
	}
	if _, _, err := runIdentity(t, csr, "sign", "-", "--dir", ca, "--roster", roster); err == nil || !strings.Contains(err.Error(), "has the address [fd7a::2], the roster has fd7a::3") {
		t.Errorf("sign after the move: %v", err)
	}
}

func TestIdentityRefuses(t *testing.T) {
	dir := t.TempDir()
	mustIdentity(t, "", "init", "--dir", dir, "--host", "h1", "--address", "100.64.0.1")
	key, err := os.ReadFile(filepath.Join(dir, "host.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"a second key", []string{"init", "--dir", dir, "--host", "h1", "--address", "100.64.0.1"}, "a key is never overwritten"},
		{"no name", []string{"init", "--dir", dir, "--address", "100.64.0.1"}, "--host and --address are needed"},
		{"a bad name", []string{"init", "--dir", dir, "--host", "H1", "--address", "100.64.0.1"}, `identity: name: found "H1"; allowed: a DNS label`},
		{"a bad address", []string{"init", "--dir", dir, "--host", "h1", "--address", "h1.lan"}, "identity: --address: "},
		{"show without a key", []string{"show", "--dir", t.TempDir()}, "'suffrage identity init' makes one"},
		{"request without a roster", []string{"request", "--dir", dir}, "roster.yaml: file does not exist"},
		{"check without a certificate", []string{"check", "--dir", dir}, "host.crt: file does not exist; 'suffrage identity request' starts"},
		{"a private key carried to be signed", []string{"sign", "-", "--dir", dir}, "is a private key, which should not be here"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, _, err := runIdentity(t, string(key), tt.args...)
			if err == nil || !strings.Contains(err.Error(), tt.want) || out != "" {
				t.Errorf("got %v and the answer %q, want an error with %q and no answer", err, out, tt.want)
			}
		})
	}
	if again, _ := os.ReadFile(filepath.Join(dir, "host.key")); !bytes.Equal(again, key) {
		t.Error("the key changed")
	}
	if _, _, err := runIdentity(t, "", "show", "--dir", t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v: want fs.ErrNotExist inside", err)
	}
}
