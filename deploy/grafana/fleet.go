package grafana

func fleet() Dashboard {
	return Dashboard{
		UID: "suffrage-fleet", Title: "Suffrage: the fleet",
		Description: "Who votes, how well each host is, and what Suffrage would do.",
		Panels: []Panel{
			{Title: "Voters", Kind: Stat, Unit: Count, Width: 6, Height: 4,
				Description: "In the member list, those that answer and are not unfit, and how many there should be.",
				Queries: []Query{
					{"max(suffrage_voters)", "voters"},
					{"max(suffrage_voters_fit)", "fit"},
					{"max(suffrage_target)", "target"}}},
			{Title: "Can lose", Kind: Stat, Unit: Count, Width: 3, Height: 4,
				Description: "How many more voters may be lost before writes stop, counted on fit ones. 0: take nothing down.",
				Steps:       []Step{{-1000, red}, {1, green}},
				Queries:     []Query{{"max(suffrage_tolerance)", "more voters"}}},
			{Title: "Decision", Kind: Stat, Unit: Count, Width: 3, Height: 4, Words: kinds,
				Description: "What the leading controller says now; suffrage status has the reasons.",
				Queries:     []Query{{decision, "decision"}}},
			{Title: "Acts", Kind: Stat, Unit: Count, Width: 6, Height: 4, Words: yesNo,
				Description: "Only in mode active anything is changed; paused, nothing new is started.",
				Queries: []Query{
					{`max(suffrage_mode{mode="active"})`, "active"},
					{"max(suffrage_paused)", "paused"},
					{"max(suffrage_operation_open)", "operation"}}},
			{Title: "Controllers that lead", Kind: Stat, Unit: Count, Width: 3, Height: 4,
				Description: "1, or nobody decides.",
				Steps:       []Step{{-1, red}, {1, green}, {2, red}},
				Queries:     []Query{{"sum(suffrage_leading)", "leading"}}},
			{Title: "Last round", Kind: Stat, Unit: Seconds, Width: 3, Height: 4,
				Description: "How long ago. Old: the controller hangs.",
				Steps:       []Step{{300, red}},
				Queries:     []Query{{"time() - max(suffrage_last_round_timestamp_seconds)", "ago"}}},

			{Title: "Verdicts", Kind: Timeline, Unit: Count, Words: verdicts,
				Description: "What each host is judged to be. Unknown: a window of it is not full.",
				Queries:     []Query{{verdictOf(""), "{{host}}"}}},
			{Title: "Roles", Kind: Timeline, Unit: Count, Words: roles,
				Description: "Who votes, and which of them leads etcd.",
				Queries:     []Query{{roleOf(""), "{{host}}"}}},

			{Title: "Round trips by pair, as a share of the limit", Kind: Timeline, Unit: Share, Width: 24, Height: 12,
				Description: "p99 of each ordered pair with a voter at one end. From 50% a standby is no candidate, above 100% a voter is unfit.",
				Steps:       []Step{{0, green}, {0.5, yellow}, {1, red}},
				Queries:     []Query{{"max by (host, peer) (suffrage_rtt_p99_seconds) / on () group_left () max(suffrage_rtt_limit_seconds)", "{{host}} → {{peer}}"}}},

			disk("WAL fsync", "wal_fsync", "", "{{host}}"),
			disk("Backend commit", "backend_commit", "", "{{host}}"),
			{Title: "Memory, as a multiple of what must stay free", Kind: Series, Unit: Count, Min: &zero,
				Description: "Lowest available memory of the newest 100 samples. Below 1 the host is unfit.",
				Queries:     []Query{{`max by (host) (suffrage_fitness_figure{signal="memory"}) / max by (host) (suffrage_fitness_limit{signal="memory"})`, "{{host}}"}}},
			{Title: "Restarts", Kind: Series, Unit: Count, Min: &zero,
				Description: "Restarts and reboots in the worst of the newest 100 samples. Above 0 the host is unfit.",
				Queries:     []Query{{`max by (host) (suffrage_fitness_figure{signal="stability"})`, "{{host}}"}}},
			{Title: "Who answers", Kind: Timeline, Unit: Count, Words: upDown,
				Description: "The agents, and the voters' etcd.",
				Queries: []Query{
					{"min by (host) (suffrage_agent_up)", "agent on {{host}}"},
					{"min by (host) (suffrage_voter_up)", "voter on {{host}}"}}},
			{Title: "What holds now", Kind: Table, Unit: Seconds,
				Description: "Each refusal and for how long it has held. docs/refusals.md says what lifts it.",
				Queries:     []Query{{"sort_desc(max by (code, subject) (suffrage_refusal_age_seconds))", ""}}},
		},
	}
}

var decision = coded("suffrage_decision", "kind", "", "", "steady", "plan", "step", "refused")
