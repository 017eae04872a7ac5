package grafana

const (
	ofHost  = `host="$host"`
	ofAgent = `job="suffrage-agent", host="$host"`
)

func host() Dashboard {
	panels := []Panel{
		{Title: "Verdict", Kind: Stat, Unit: Count, Width: 4, Height: 4, Words: verdicts,
			Description: "suffrage explain HOST has the reasons.",
			Queries:     []Query{{verdictOf(ofHost), "{{host}}"}}},
		{Title: "Role", Kind: Stat, Unit: Count, Width: 4, Height: 4, Words: roles,
			Description: "leader: of etcd, a voter too.",
			Queries:     []Query{{roleOf(ofHost), "{{host}}"}}},
		{Title: "Agent", Kind: Stat, Unit: Count, Width: 4, Height: 4, Words: upDown,
			Description: "Whether it answered the leading controller in the last round.",
			Queries:     []Query{{`min by (host) (suffrage_agent_up{` + ofHost + `})`, "{{host}}"}}},
		{Title: "Snapshot", Kind: Stat, Unit: Date, Width: 6, Height: 4,
			Description: "When this host last saved and verified one by schedule; 1970: not since its agent started.",
			Queries:     []Query{{`suffrage_snapshot_last_success_timestamp_seconds{` + ofHost + `} * 1000`, "{{host}}"}}},
		{Title: "Latest tick", Kind: Stat, Unit: Seconds, Width: 6, Height: 4, Steps: []Step{{1, red}},
			Description: "How late the latest of the newest 100 was. Late samples weigh nothing.",
			Queries:     []Query{{`suffrage_agent_tick_late_max_seconds{` + ofHost + `}`, "{{host}}"}}},

		{Title: "Round trips", Kind: Series, Unit: Seconds, Width: 24, Min: &zero,
			Description: "p99 to each peer, as the agent measures it.",
			Queries: []Query{
				{`suffrage_agent_rtt_p99_seconds{` + ofHost + `}`, "to {{peer}}"},
				{"max(suffrage_rtt_limit_seconds)", "limit"}}},
		{Title: "Pings lost", Kind: Series, Unit: Count, Min: &zero, Description: "Within the interval, by peer.",
			Queries: []Query{{`increase(suffrage_agent_pings_lost_total{` + ofHost + `}[$__rate_interval])`, "to {{peer}}"}}},
		{Title: "Clock offset", Kind: Series, Unit: Seconds, Description: "Median, positive when the peer's clock is ahead. It decides nothing.",
			Queries: []Query{{`suffrage_agent_clock_offset_p50_seconds{` + ofHost + `}`, "{{peer}}"}}},
		disk("WAL fsync", "wal_fsync", ofHost, "p99"),
		disk("Backend commit", "backend_commit", ofHost, "p99"),
		{Title: "Available memory", Kind: Series, Unit: Bytes, Min: &zero, Description: "Lowest of the newest 100 samples. Below the limit the host is unfit.",
			Queries: []Query{
				{`max(suffrage_fitness_figure{signal="memory", ` + ofHost + `})`, "available"},
				{`max(suffrage_fitness_limit{signal="memory", ` + ofHost + `})`, "limit"}}},
		{Title: "Samples in the window", Kind: Series, Unit: Count, Min: &zero, Description: "Below 100 the signal is unknown.",
			Queries: []Query{{`suffrage_agent_window_samples{` + ofHost + `}`, "{{signal}} {{peer}}"}}},
		{Title: "Probes", Kind: Timeline, Unit: Count, Words: works, Description: "Whether the last run of each worked. The agent's log has the reason.",
			Queries: []Query{{`suffrage_agent_probe_success{` + ofHost + `}`, "{{probe}}"}}},
		{Title: "How long probes take", Kind: Series, Unit: Seconds, Min: &zero, Description: "Near 5 s one hangs.",
			Queries: []Query{{`suffrage_agent_probe_duration_seconds{` + ofHost + `}`, "{{probe}}"}}},
		{Title: "etcd's database", Kind: Series, Unit: Bytes, Min: &zero, Description: "While this host has a member.",
			Queries: []Query{
				{`etcd_mvcc_db_total_size_in_bytes{` + ofHost + `}`, "on disk"},
				{`etcd_mvcc_db_total_size_in_use_in_bytes{` + ofHost + `}`, "in use"}}},
		{Title: "etcd's own slowness", Kind: Series, Unit: Seconds, Min: &zero, Description: "p99 of etcd's fsyncs and commits, between the edges of its histogram.",
			Queries: []Query{
				{`histogram_quantile(0.99, rate(etcd_disk_wal_fsync_duration_seconds_bucket{` + ofHost + `}[$__rate_interval]))`, "WAL fsync"},
				{`histogram_quantile(0.99, rate(etcd_disk_backend_commit_duration_seconds_bucket{` + ofHost + `}[$__rate_interval]))`, "backend commit"}}},
	}
	return Dashboard{UID: "suffrage-host", Title: "Suffrage: one host", PerHost: true,
		Description: "What is measured on a host, against the limits it is judged by, and what the measuring costs.",
		Panels:      append(panels, cost("The agent's own cost", ofAgent, "{{host}}")...)}
}
