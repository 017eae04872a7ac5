package lease_test

import (
	"testing"

	"suffrage/lease"
)

// What stores keep is read strictly, whoever wrote it.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"term":7,"duration":"60s","renewals":1,"since":"2026-07-01T12:00:00Z"}`,
		`{"holder":{"host":"h1","instance":"x"},"term":7,"duration":"60s","renewals":9,"since":"2026-07-01T12:00:00Z","purpose":"swap","journal":"AAE="}`,
		`{"term":7,"duration":"60s","renewals":1,"since":"2026-07-01T12:00:00Z"}{}`, `{"term":-1}`, `{"term":7,"duration":"1ns"}`, `{}`, `null`, ``,
		`{"holder":{"host":"h1"},"term":7,"duration":"60s"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := lease.Decode(data)
		if err == nil && r.Validate() != nil {
			t.Errorf("%q was accepted: %v", data, r.Validate())
		}
	})
}
