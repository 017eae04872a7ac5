package lab

import (
	"cmp"
	"time"

	"suffrage/demo"
	"suffrage/fitness"
	"suffrage/membership"
)

// Period is the time between two samples, unless a Plan has another: windows are of two and a half seconds
// instead of five minutes.
const Period = 25 * time.Millisecond

// All hosts share one machine's memory. Whatever else a settings file has is left to its default,
// as on real hosts.
const (
	quota     = 256 << 20
	stallTime = fitness.Duration(15 * time.Second)
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
			"zone": h.Zone, "unit": h.Path(demo.UnitSocket), "period": cmp.Or(p.Period, Period).String(), "ping_timeout": "500ms",
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
