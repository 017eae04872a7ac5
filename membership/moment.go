package membership

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"suffrage/fitness"
)

// MomentVersion is the version of the JSON form of a Moment. People keep these
// files for months: fields are added, never renamed. docs/inputs.md describes it.
const MomentVersion = 1

// MaxMoment bounds one line of a timeline, in bytes: a thousand hosts with seven
// voters take half a megabyte.
const MaxMoment = 4 << 20

// Moment is what a round saw and said, in short: one line of the timeline that
// a report is made of. Inputs say why a decision was what it was; moments say for
// how long, over months, in a thousandth of the space.
type Moment struct {
	Version int       `json:"version"`
	At      time.Time `json:"at"`
	// Next is the longest time to the next moment while a controller leads. A
	// longer silence means that nobody looked, and nothing is known of it.
	Next fitness.Duration `json:"next"`
	// Changes are those of the decision since the moment before, up to this one.
	Changes int    `json:"changes,omitempty"`
	Mode    string `json:"mode"`
	Kind    Kind   `json:"kind"`
	// Out and In are those of the plan, or of the open operation.
	Out       string `json:"out,omitempty"`
	In        string `json:"in,omitempty"`
	Operation string `json:"operation,omitempty"`
	// Regrade is the host whose grade the plan or the open operation changes, To what
	// it becomes.
	Regrade  string          `json:"regrade,omitempty"`
	To       fitness.Grade   `json:"to,omitempty"`
	Refusals []MomentRefusal `json:"refusals,omitempty"`
	// Voters and Leader are hosts, or names or IDs of members without one.
	Voters    []string         `json:"voters"`
	Leader    string           `json:"leader,omitempty"`
	FitVoters int              `json:"fit_voters"`
	Tolerance int              `json:"tolerance"`
	Hosts     []MomentHost     `json:"hosts"`
	Limits    fitness.Limits   `json:"limits"`
	Figures   map[string]Reach `json:"figures,omitempty"`
}

// MomentRefusal is a refusal without its texts.
type MomentRefusal struct {
	Code    Code        `json:"code"`
	Kind    RefusalKind `json:"kind"`
	Subject string      `json:"subject,omitempty"`
}

// MomentHost is a host with its verdict.
type MomentHost struct {
	Host   string         `json:"host"`
	Status fitness.Status `json:"status"`
	Whole  bool           `json:"whole,omitempty"`
	Mark   string         `json:"mark"`
	// Reasons are signals, with the peer of a pair: "rtt h2".
	Reasons []string `json:"reasons,omitempty"`
}

// Reach is a p99: now, and the worst of all rounds since the moment before.
type Reach [2]fitness.Figure

// FigureKey names a figure of a moment: "rtt h1 h2", "wal_fsync h1".
func FigureKey(s fitness.Signal, host, peer string) string {
	return strings.TrimRight(string(s)+" "+host+" "+peer, " ")
}

// timed are the signals of which a moment has figures: those with a p99.
var timed = []fitness.Signal{fitness.RTT, fitness.WALFsync, fitness.BackendCommit}

// MomentOf is the moment of one round, with every figure as its own worst.
func MomentOf(in Inputs, d Decision) Moment {
	m := Moment{Version: MomentVersion, At: in.Now, Mode: d.Mode, Kind: d.Kind, FitVoters: d.FitVoters, Tolerance: d.Tolerance,
		Voters: []string{}, Hosts: []MomentHost{}, Limits: in.Policy.Limits, Figures: map[string]Reach{}}
	if p := d.Plan; p != nil {
		m.Out, m.In, m.Regrade, m.To = p.Out, p.In, p.Regrade, p.To
	}
	if o := d.Operation; o != nil {
		m.Out, m.In, m.Operation, m.Regrade, m.To = o.Out, o.In, o.ID, o.Regrade, o.To
	}
	for _, r := range d.Refusals {
		m.Refusals = append(m.Refusals, MomentRefusal{r.Code, r.Kind, r.Subject})
	}
	leader := in.View.Leader()
	for _, v := range in.View.Voters() {
		m.Voters = append(m.Voters, v.Label())
		if leader != "" && v.ID == leader {
			m.Leader = v.Label()
		}
	}
	slices.Sort(m.Voters)
	for _, v := range d.Verdicts {
		h := MomentHost{Host: v.Host, Status: v.Status, Whole: v.Whole}
		if host, ok := in.View.HostNamed(v.Host); ok {
			h.Mark = host.Mark.Word()
		}
		for _, r := range v.Reasons {
			h.Reasons = append(h.Reasons, strings.TrimRight(string(r.Signal)+" "+r.Peer, " "))
		}
		m.Hosts = append(m.Hosts, h)
	}
	for _, r := range in.Readings {
		if r.Band != fitness.Unknown && slices.Contains(timed, r.Signal) {
			f := rounded(r.Figure)
			m.Figures[FigureKey(r.Signal, r.Host, r.Peer)] = Reach{f, f}
		}
	}
	return m
}

// rounded keeps three digits: no probe is more precise, and lines stay short.
func rounded(f fitness.Figure) fitness.Figure {
	if math.IsInf(float64(f), 0) || math.IsNaN(float64(f)) {
		return f
	}
	short, _ := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'e', 2, 64), 64)
	return fitness.Figure(short)
}

// Same reports whether nothing but figures and times differs.
func (m Moment) Same(o Moment) bool {
	return m.Mode == o.Mode && m.Kind == o.Kind && m.Out == o.Out && m.In == o.In && m.Operation == o.Operation &&
		m.Regrade == o.Regrade && m.To == o.To &&
		m.Leader == o.Leader && m.FitVoters == o.FitVoters && m.Tolerance == o.Tolerance &&
		slices.Equal(m.Refusals, o.Refusals) && slices.Equal(m.Voters, o.Voters) &&
		slices.EqualFunc(m.Hosts, o.Hosts, func(a, b MomentHost) bool {
			return a.Host == b.Host && a.Status == b.Status && a.Whole == b.Whole && a.Mark == b.Mark
		})
}

// Worsen raises the worst figures to those of an earlier round.
func (m Moment) Worsen(before map[string]Reach) {
	for k, r := range m.Figures {
		m.Figures[k] = Reach{r[0], max(r[1], before[k][1])}
	}
}

// Append appends the moment as one line.
func (m Moment) Append(b []byte) ([]byte, error) {
	line, err := json.Marshal(m)
	if err != nil {
		return b, fmt.Errorf("membership: write moment: %w", err)
	}
	return append(append(b, line...), '\n'), nil
}

// ReadMoment reads one line strictly: an unknown key, another version, a moment
// without its time or anything after the value is an error.
func ReadMoment(line []byte) (Moment, error) {
	if len(line) > MaxMoment {
		return Moment{}, fmt.Errorf("membership: moment of %d bytes; at most %d are read", len(line), MaxMoment)
	}
	var m Moment
	d := json.NewDecoder(strings.NewReader(string(line)))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		// One of a later version has keys that this build does not know.
		var v struct {
			Version int `json:"version"`
		}
		if json.Unmarshal(line, &v) == nil && v.Version > MomentVersion {
			return Moment{}, versionError(v.Version)
		}
		return Moment{}, fmt.Errorf("membership: moment: %w", err)
	}
	switch _, err := d.Token(); {
	case err != io.EOF:
		return Moment{}, errors.New("membership: moment: something follows the value on its line")
	case m.Version != MomentVersion:
		return Moment{}, versionError(m.Version)
	case m.At.IsZero():
		return Moment{}, errors.New(`membership: moment: it has no time "at"`)
	case m.Next <= 0:
		return Moment{}, errors.New(`membership: moment: "next" must be more than 0`)
	}
	for _, k := range slices.Sorted(maps.Keys(m.Figures)) {
		if m.Figures[k][0] < 0 || m.Figures[k][1] < m.Figures[k][0] {
			return Moment{}, fmt.Errorf("membership: moment: figure %.80q: the worst is below the one of now, or below 0", k)
		}
	}
	return m, nil
}

func versionError(v int) error {
	return fmt.Errorf("membership: moment of version %d; this build reads version %d", v, MomentVersion)
}
