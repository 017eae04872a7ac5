package snapshots

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	suffix     = ".db" // etcdctl's
	partial    = ".partial"
	timeLayout = "20060102T150405Z"
)

// ErrName means that a file was not named by this package.
var ErrName = errors.New("snapshots: not a snapshot's name")

// Name is what a file name tells: 20260806T120000Z_h3_48213.db.
type Name struct {
	// Time is when the save began, in UTC, to the second: all writes that were
	// acknowledged before it are in the snapshot, if the voter was up to date.
	Time time.Time
	// Host is the voter's host, a DNS label: it cannot hold the separator.
	Host string
	// Revision is the newest one in the snapshot.
	Revision int64
}

func (n Name) String() string {
	return fmt.Sprintf("%s_%s_%d%s", n.Time.UTC().Format(timeLayout), n.Host, n.Revision, suffix)
}

// ParseName reads a file name without its directory. It accepts exactly what
// String writes.
func ParseName(s string) (Name, error) {
	bad := func(why string) (Name, error) { return Name{}, fmt.Errorf("%w: %q: %s", ErrName, s, why) }
	base, ok := strings.CutSuffix(s, suffix)
	parts := strings.Split(base, "_")
	if !ok || len(parts) != 3 {
		return bad("want TIME_HOST_REVISION" + suffix)
	}
	t, err := time.Parse(timeLayout, parts[0])
	if err != nil {
		return bad("the time is not like " + timeLayout)
	}
	if !isLabel(parts[1]) {
		return bad("the host is not a DNS label")
	}
	rev, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || rev < 1 {
		return bad("the revision is not a number from 1")
	}
	n := Name{Time: t, Host: parts[1], Revision: rev}
	if n.String() != s {
		return bad("write it as " + n.String())
	}
	return n, nil
}

// isLabel is the roster's rule for host names.
func isLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}
