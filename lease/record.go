package lease

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"suffrage/fitness"
)

// Bounds of a record. A Kubernetes annotation holds 256 KiB; a journal of 64 KiB
// takes 86 KiB there and in etcd.
const (
	MaxJournal = 64 << 10 // bytes
	maxText    = 256      // bytes of the host's name, the instance, the purpose
	// maxRecord is above what a record with the largest journal takes as JSON: 4/3
	// of it in base64, and texts of which JSON makes up to six bytes each.
	maxRecord = MaxJournal/3*4 + 8<<10
)

// Term is the fencing number of the Lease. Each change of holder has a higher
// one than all before it, also when the record was deleted in between: a new
// Term is above the record's and above the store's Floor.
type Term uint64

// Holder is one contender for the Lease.
type Holder struct {
	Host string `json:"host"`
	// Instance is new for each process, so that one which was restarted does
	// not take the Lease of the one before for its own.
	Instance string `json:"instance"`
}

// NewHolder makes one for this process. Two Runs at a time need one each.
func NewHolder(host string) Holder {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return Holder{Host: host, Instance: hex.EncodeToString(b)}
}

func (h Holder) String() string { return fmt.Sprintf("%s (instance %s)", h.Host, h.Instance) }

// Record is what the store keeps.
type Record struct {
	// Holder is zero when nobody holds the Lease.
	Holder Holder `json:"holder,omitzero"`
	// Term is that of the holder, or of the last one.
	Term Term `json:"term"`
	// Duration is how long the record must be seen unchanged before another may
	// take a held Lease. 1s to 10m.
	Duration fitness.Duration `json:"duration"`
	// Renewals counts the writes of all holders, so that no two are equal.
	Renewals uint64 `json:"renewals"`
	// Since is when the Lease was taken or released, by the writer's clock, in
	// microseconds (Kubernetes keeps no finer time). Nothing is decided by it.
	Since time.Time `json:"since"`
	// Purpose says in a few words what the Lease was taken for.
	Purpose string `json:"purpose,omitempty"`
	// Journal is the operation under way, empty when there is none. At most
	// MaxJournal bytes, which mean nothing here.
	Journal []byte `json:"journal,omitempty"`
}

// Equal is whether two records are the same. Writes of two processes never are.
func (r Record) Equal(o Record) bool {
	return r.Holder == o.Holder && r.Term == o.Term && r.Duration == o.Duration && r.Renewals == o.Renewals &&
		r.Since.Equal(o.Since) && r.Purpose == o.Purpose && bytes.Equal(r.Journal, o.Journal)
}

// Validate says what in a record cannot be. Stores check what they read and
// what they write with it.
func (r Record) Validate() error {
	switch d := r.Duration.Std(); {
	case r.Term == 0:
		return fmt.Errorf("term is 0; the first is 1")
	case d < minDuration || d > maxDuration:
		return fmt.Errorf("duration is %v; %v to %v", d, minDuration, maxDuration)
	case len(r.Journal) > MaxJournal:
		return fmt.Errorf("journal is %d bytes; at most %d", len(r.Journal), MaxJournal)
	case (r.Holder.Host == "") != (r.Holder.Instance == ""):
		return fmt.Errorf("holder has host %q and instance %q; both, or neither", r.Holder.Host, r.Holder.Instance)
	}
	for _, s := range []string{r.Holder.Host, r.Holder.Instance, r.Purpose} {
		if len(s) > maxText || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			return fmt.Errorf("holder or purpose is %.50q; at most %d bytes of printable text", s, maxText)
		}
	}
	return nil
}

// Decode reads a record from its JSON form, strictly: what no Lease wrote is an
// error.
func Decode(data []byte) (Record, error) {
	if len(data) > maxRecord {
		return Record{}, fmt.Errorf("%d bytes; at most %d", len(data), maxRecord)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var r Record
	if err := d.Decode(&r); err != nil {
		return Record{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Record{}, errors.New("something follows the value")
	}
	return r, r.Validate()
}

// taken is the record once h takes the Lease that was seen.
func taken(s Seen, h Holder, d fitness.Duration, purpose string, now time.Time) Record {
	return Record{Holder: h, Term: max(s.Record.Term, s.Floor) + 1, Duration: d, Renewals: s.Record.Renewals + 1,
		Since: written(now), Purpose: purpose, Journal: s.Record.Journal}
}

func (r Record) renewed() Record {
	r.Renewals++
	return r
}

func (r Record) released(now time.Time) Record {
	r.Holder, r.Purpose, r.Since = Holder{}, "", written(now)
	return r.renewed()
}

func written(t time.Time) time.Time { return t.UTC().Round(0).Truncate(time.Microsecond) }
