package lab

import (
	"cmp"
	"time"

	"suffrage/demo"
	"suffrage/fitness"
	"suffrage/membership"
)

// The windows are of five seconds instead of five minutes, and all hosts share
// one machine's memory. Whatever else a settings file has is left to its default,
// as on real hosts.
const (
	quota     = 256 << 20
	stallTime = fitness.Duration(20 * time.Second)
	soak      = fitness.Duration(3 * time.Second)
)

// settings is the content of a host's settings file.
func (p Plan) settings(f *demo.Fleet, h demo.Host) (any, error) {
	type section = map[string]any
	return section{
		"host": h.Name,
		"dir":  h.Dir,
		"data": h.Path(demo.DataDir),
		"agent": section{
			"zone": h.Zone, "unit": h.Path(demo.UnitSocket), "period": "50ms", "ping_timeout": "1s",
		},
		"member": section{"initial_cluster": f.InitialCluster(), "quota": quota},
		"etcd":   section{"endpoints": f.ClientURLs()},
		"controller": section{
			"mode": membership.Active, "round": "500ms", "soak": cmp.Or(p.Soak, soak), "session_ttl": "7s", "stall_time": cmp.Or(p.StallTime, stallTime),
			"lease":  section{"duration": "15s", "renew": "1s"},
			"limits": section{"storage_quota": quota, "memory_used_max": 1},
		},
		"snapshots": section{"at": []string{}}, // none comes between by the hour of the day
	}, nil
}
