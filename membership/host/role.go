package host

import "time"

const roleFile = "role.json"

// Roles of a host.
const (
	Voter   = "voter"
	Standby = "standby"
)

// role is what this host is. It says what is intended: a voter may still be a
// learner, or down.
type role struct {
	Role string `json:"role"`
	// Member is the ID that a voter joined as, Operation what made it so.
	Member    string    `json:"member,omitempty"`
	Operation string    `json:"operation,omitempty"`
	At        time.Time `json:"at,omitzero"`
}

// role reads the role file. Before there is one, a host with a datastore is a
// voter: one of those that the cluster was made of.
func (s *Server) role() (role, error) {
	var r role
	there, err := s.files.read(roleFile, &r)
	if err != nil || there {
		return r, err
	}
	has, err := hasDatastore(s.o.Datastore)
	r.Role = Standby
	if has {
		r.Role = Voter
	}
	return r, err
}
