package membership

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"suffrage/fitness"
)

// InputsVersion is the version of the JSON form of Inputs. People keep these
// files: fields are added, never renamed, and a change of meaning is a new
// version. docs/inputs.md describes it.
const InputsVersion = 1

// MaxInputs bounds an inputs file, in bytes: a thousand hosts with seven
// voters take about ten megabytes.
const MaxInputs = 64 << 20

// Inputs are everything that Decide looks at.
type Inputs struct {
	Version int       `json:"version"`
	Now     time.Time `json:"now"`
	Policy  Policy    `json:"policy"`
	View    View      `json:"view"`
	// Readings are of all hosts, in any order.
	Readings []fitness.Reading `json:"readings"`
	// Operations are the ended ones of the last days, in any order.
	Operations []Operation `json:"operations,omitempty"`
	// Open is the operation under way, from the Lease's record.
	Open *Operation `json:"open,omitempty"`
	// Request is what the owner asks for; nothing else is planned then.
	Request *Request `json:"request,omitempty"`
	// Term is that of the Lease under which this is decided, zero without one.
	// Within one Term, Now goes on as time does: whoever fills it in counts from
	// the first one by a monotonic clock, or a clock that is set would end waits.
	Term uint64 `json:"term,omitempty"`
	// Controllers are the hosts whose controllers lead or wait to lead, sorted; none
	// where that is not known. A controller leaves its own host's vote to another one.
	Controllers []string `json:"controllers,omitempty"`
	// Failed is the newest act of the open operation, where it had an error: it
	// was refused, or had no answer and may be done all the same.
	Failed *Failure `json:"failed,omitempty"`
	// Previous is the decision before, for its ages.
	Previous *Previous `json:"previous,omitempty"`
}

// Failure is an act that had an error.
type Failure struct {
	Operation string `json:"operation"`
	Verb      Verb   `json:"verb"`
	Host      string `json:"host"`
	Error     string `json:"error"`
}

// The modes of a Policy.
const (
	// DryRun: everything up to the first write, every round, and no write.
	DryRun = "dry-run"
	Active = "active"
)

// K3s is the Flavour in which K3s runs etcd within its servers. A server that is
// started adds itself as a learner, K3s promotes it once it has caught up, and
// one that was removed joins again at its next start unless it is fenced.
const K3s = "k3s"

// Policy is what the owner decided.
type Policy struct {
	// Mode is DryRun or Active.
	Mode string `json:"mode"`
	// Flavour says who runs etcd: K3s, or with none the members of Suffrage itself.
	Flavour string `json:"flavour,omitempty"`
	// Target is the number of voters to keep: odd, at least 3. By itself it grows
	// and shrinks nothing: that takes the owner's Request.
	Target int `json:"target"`
	// Maximum is the highest number of voters there may be at any time: above
	// Target, since a swap passes through Target+1.
	Maximum int `json:"maximum"`
	// Period is the time between two samples.
	Period fitness.Duration `json:"period"`
	// StallTime is how long a learner may make no progress: K3s's 5 minutes.
	// The cooldown is this plus one window.
	StallTime fitness.Duration `json:"stall_time"`
	// Soak is how long all n+1 voters have to be well before the old one goes.
	Soak fitness.Duration `json:"soak,omitempty"`
	// RegradeHeadroom is what has to be available above the memory floor before a
	// server that was stepped down to etcd-only steps back up, in bytes. It has to be
	// more than stepping down frees. 0: no server changes its grade by itself.
	RegradeHeadroom int64 `json:"regrade_headroom,omitempty"`
	// Paused: nothing new is started.
	Paused *Say `json:"paused,omitempty"`
	// Stop ends one operation where it is, by the owner's word.
	Stop   *Stop          `json:"stop,omitempty"`
	Limits fitness.Limits `json:"limits"`
}

// Window is the time that one window of samples takes.
func (p Policy) Window() time.Duration { return fitness.WindowSize * p.Period.Std() }

// Cooldown is the time to wait after any operation or membership change.
func (p Policy) Cooldown() time.Duration { return p.StallTime.Std() + p.Window() }

// Previous is what must be known of the decision before to give ages.
type Previous struct {
	Key      string        `json:"key"`
	Since    time.Time     `json:"since"`
	Refusals []RefusalSeen `json:"refusals,omitempty"`
}

// RefusalSeen is since when a refusal has held.
type RefusalSeen struct {
	Code    Code      `json:"code"`
	Subject string    `json:"subject,omitempty"`
	Since   time.Time `json:"since"`
}

// WriteInputs writes the JSON form, indented for people.
func WriteInputs(w io.Writer, in Inputs) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	if err := e.Encode(in); err != nil {
		return fmt.Errorf("membership: write inputs: %w", err)
	}
	return nil
}

// ReadInputs reads the JSON form strictly: an unknown key, a key given twice,
// another version or anything after the value is an error that names the line.
func ReadInputs(data []byte) (Inputs, error) {
	if len(data) > MaxInputs {
		return Inputs{}, fmt.Errorf("membership: inputs of %d bytes; at most %d are read", len(data), MaxInputs)
	}
	var v struct {
		Version *int `json:"version"`
	}
	// This reads the file to its end, so from here on its syntax is known to be right.
	if err := json.Unmarshal(data, &v); err != nil {
		at := int64(len(data))
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			at = syntax.Offset
		} else if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
			at = kind.Offset
			err = errors.New("this is not an inputs file: it must be an object with a whole number as its version")
		}
		return Inputs{}, fmt.Errorf("membership: inputs line %d: %w", line(data, at), err)
	}
	switch {
	case v.Version == nil:
		return Inputs{}, errors.New(`membership: this is not an inputs file: it has no "version"`)
	case *v.Version != InputsVersion:
		return Inputs{}, fmt.Errorf("membership: inputs of version %d; this build reads version %d: use the build that recorded it", *v.Version, InputsVersion)
	}
	var in Inputs
	d := strict{json.NewDecoder(bytes.NewReader(data)), map[reflect.Type]map[string]int{}}
	if err := d.decode(reflect.ValueOf(&in).Elem()); err != nil {
		return Inputs{}, fmt.Errorf("membership: inputs line %d: %w", line(data, d.InputOffset()), err)
	}
	return in, nil
}

func line(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(int(offset), len(data))], []byte("\n"))
}
