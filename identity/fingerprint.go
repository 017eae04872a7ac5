package identity

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"strings"
)

const prefix = "SHA256:"

// Fingerprint names a public key: the SHA-256 of its SubjectPublicKeyInfo in DER. Its text form is
// "SHA256:" and 43 characters of base64 without padding, 50 in all, as OpenSSH writes fingerprints
// (but of other bytes, so the two never match). The zero value is no fingerprint.
type Fingerprint [sha256.Size]byte

// FingerprintOf gives the fingerprint of a public key that x509 can encode.
func FingerprintOf(public crypto.PublicKey) (Fingerprint, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return Fingerprint{}, fmt.Errorf("identity: fingerprint of a %T: %w", public, err)
	}
	return sha256.Sum256(der), nil
}

// ParseFingerprint reads the text form. One fingerprint has one text form: anything that String
// would not write is refused.
func ParseFingerprint(s string) (Fingerprint, error) {
	var f Fingerprint
	rest, ok := strings.CutPrefix(s, prefix)
	sum, err := base64.RawStdEncoding.Strict().DecodeString(rest)
	if copy(f[:], sum); !ok || err != nil || len(sum) != len(f) || f.String() != s {
		return Fingerprint{}, fmt.Errorf("identity: %q is no fingerprint: want SHA256: and 43 base64 characters, as 'suffrage identity show' prints it", clip(s))
	}
	if f.IsZero() {
		return Fingerprint{}, fmt.Errorf("identity: a fingerprint of zeros belongs to no key")
	}
	return f, nil
}

func (f Fingerprint) String() string {
	if f.IsZero() {
		return "no fingerprint"
	}
	return prefix + base64.RawStdEncoding.EncodeToString(f[:])
}

// IsZero says that this is no fingerprint.
func (f Fingerprint) IsZero() bool { return f == Fingerprint{} }

// MarshalText and UnmarshalText make the text form the form in YAML and JSON.
func (f Fingerprint) MarshalText() ([]byte, error) {
	if f.IsZero() {
		return nil, nil
	}
	return []byte(f.String()), nil
}

// UnmarshalText reads what MarshalText writes; empty text is no fingerprint.
func (f *Fingerprint) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*f = Fingerprint{}
		return nil
	}
	*f, err = ParseFingerprint(string(text))
	return err
}

func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
