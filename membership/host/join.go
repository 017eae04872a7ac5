package host

import "fmt"

const joinFile = "join.json"

// Join says how a member starts where it has no datastore yet: as one that the
// cluster lists already.
type Join struct {
	Operation string `json:"operation"`
	Member    string `json:"member"`
	// Peers are the names and peer URLs of all members, this one among them.
	Peers map[string]string `json:"peers"`
}

// Joining gives what an order left for the next start, nil when nothing.
func Joining(data string) (*Join, error) {
	var j Join
	there, err := files{path: data}.read(joinFile, &j)
	if err != nil || !there {
		return nil, err
	}
	if len(j.Peers) == 0 {
		return nil, fmt.Errorf("host: %s names no members", files{path: data}.file(joinFile))
	}
	return &j, nil
}

// Joined forgets it: the datastore knows the members from now on.
func Joined(data string) error { return files{path: data}.remove(joinFile) }
