package identity_test

import (
	"crypto/x509"
	"encoding/base64"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"suffrage/identity"
)

// A fixed key, its fingerprint computed apart from this code:
// base64 -d | openssl dgst -sha256 -binary | base64
const (
	fixedSPKI        = "MCowBQYDK2VwAyEAAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	fixedFingerprint = "SHA256:lAhFeu/Qcc7BJ8H5hTmTCGGtG6lMlA25dclywJ/Gi2g"
)

func TestFingerprintOfAKnownKey(t *testing.T) {
	der, err := base64.StdEncoding.DecodeString(fixedSPKI)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		t.Fatal(err)
	}
	got, err := identity.FingerprintOf(public)
	if err != nil || got.String() != fixedFingerprint {
		t.Errorf("got %s (%v), openssl says %s", got, err, fixedFingerprint)
	}
}

func TestParseFingerprintRefuses(t *testing.T) {
	body := strings.TrimPrefix(fixedFingerprint, "SHA256:")
	for why, s := range map[string]string{
		"empty":                          "",
		"no prefix":                      body,
		"lower-case prefix":              "sha256:" + body,
		"padding":                        fixedFingerprint + "=",
		"one character short":            fixedFingerprint[:len(fixedFingerprint)-1],
		"one character long":             fixedFingerprint + "A",
		"a line break in the middle":     fixedFingerprint[:20] + "\n" + fixedFingerprint[20:],
		"space after":                    fixedFingerprint + " ",
		"base64 for URLs":                "SHA256:" + strings.Repeat("_", 43),
		"bits that no byte holds":        "SHA256:" + strings.Repeat("A", 42) + "B",
		"zeros, the sign of nothing":     "SHA256:" + strings.Repeat("A", 43),
		"hexadecimal, as openssl prints": "SHA256:" + strings.Repeat("ab", 32),
	} {
		if f, err := identity.ParseFingerprint(s); err == nil {
			t.Errorf("%s: %q was read as %s", why, s, f)
		}
	}
}

func TestFingerprintTextIsOneToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f identity.Fingerprint
		copy(f[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "sum"))
		if f.IsZero() {
			return
		}
		if got, err := identity.ParseFingerprint(f.String()); err != nil || got != f {
			t.Fatalf("%s was read as %s (%v)", f, got, err)
		}
	})
}

func FuzzParseFingerprint(f *testing.F) {
	for _, s := range []string{fixedFingerprint, "", "SHA256:", "sha256:x", fixedFingerprint + "=", strings.Repeat("S", 500)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := identity.ParseFingerprint(s)
		if err != nil {
			if len(err.Error()) > 600 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if got.String() != s {
			t.Errorf("%q is read but written as %q", s, got)
		}
	})
}
