package etcd

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"suffrage/membership"
)

// maxMembers is the most members that are observed. etcd advises at most 7.
const maxMembers = 64

// Observation is what one look at the cluster gave.
type Observation struct {
	At        time.Time
	ClusterID string
	// Error says why the member list could not be read through a quorum. Members
	// are then the list that some member has in its own store, for display only.
	Error string
	// Members are sorted by ID.
	Members []membership.Member
	// Alarms are sorted by member and kind.
	Alarms []membership.Alarm
	// Downgrade is the target version of an open downgrade. etcd 3.5 does not
	// tell; DowngradeTold is false when no member did.
	Downgrade     string
	DowngradeTold bool
	// Reached is the URL that each member answered at, by member ID.
	Reached map[string]string
	// Troubles are the calls that did not succeed, explained, sorted.
	Troubles []Trouble
}

// Trouble is one thing that went wrong and the next thing to do.
type Trouble struct {
	// Subject is a member's label or an endpoint.
	Subject string `json:"subject"`
	What    string `json:"what"`
	Next    string `json:"next"`
}

func (t Trouble) String() string { return t.Subject + ": " + t.What }

// Fill writes the cluster's part of a View: everything but the hosts and what
// is recorded of the past.
func (o Observation) Fill(v *membership.View) {
	v.At, v.ClusterID, v.Error = o.At, o.ClusterID, o.Error
	v.Members, v.Alarms, v.Downgrade = o.Members, o.Alarms, o.Downgrade
}

// ID is a member or cluster ID as etcdctl prints it.
func ID(id uint64) string { return strconv.FormatUint(id, 16) }

// opinion is a member list in the short form that is compared.
func opinion(members []*pb.Member) []string {
	out := make([]string, 0, len(members))
	for _, m := range members {
		id := ID(m.ID)
		if m.IsLearner {
			id += "?"
		}
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

func sortAlarms(alarms []membership.Alarm) []membership.Alarm {
	slices.SortFunc(alarms, func(a, b membership.Alarm) int {
		if c := strings.Compare(a.Member, b.Member); c != 0 {
			return c
		}
		return strings.Compare(a.Kind, b.Kind)
	})
	return slices.Compact(alarms)
}

// A member's Status names the alarms as the text form of a protocol message.
// Its spacing differs between builds of the protobuf library on purpose.
var alarmText = regexp.MustCompile(`^(?:memberID:\s*(\d+)\s+)?alarm:\s*([A-Z]+)\s*$`)

// alarmIn reads an alarm from Status. Every member's Status names all alarms of
// the cluster, as that member has applied them. Listing them with etcd's Alarm
// call would append to etcd's log (it is a proposal like any write) and tell no
// more: nothing is done anyway unless every voter answers.
func alarmIn(text string) (membership.Alarm, bool) {
	m := alarmText.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return membership.Alarm{}, false
	}
	id, err := strconv.ParseUint(m[1], 10, 64)
	if m[1] != "" && err != nil {
		return membership.Alarm{}, false
	}
	return membership.Alarm{Member: ID(id), Kind: m[2]}, true
}

// listError says why no list was read through a quorum.
func listError(timeout time.Duration, troubles []Trouble) string {
	parts := make([]string, len(troubles))
	for i, t := range troubles {
		parts[i] = t.String()
	}
	return fmt.Sprintf("no member served the member list through a quorum within %v (%s)", timeout, strings.Join(parts, "; "))
}
