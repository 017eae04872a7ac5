package grafana

// voters selects the hosts that hold a vote.
const voters = `max by (host) (suffrage_host_role{role=~"leader|voter"}) == 1`

func swaps() Dashboard {
	panels := []Panel{
		{Title: "Acts", Kind: Stat, Unit: Count, Width: 8, Height: 4, Words: yesNo,
			Description: "Only in mode active anything is changed; paused, nothing new is started.",
			Queries: []Query{
				{`max(suffrage_mode{mode="active"})`, "active"},
				{"max(suffrage_paused)", "paused"},
				{"max(suffrage_operation_open)", "operation"},
				{"max(suffrage_lease_term) > bool 0", "Lease held"}}},
		{Title: "Operations recorded", Kind: Stat, Unit: Count, Width: 10, Height: 4,
			Description: "Of the last days, by how they ended. suffrage operations list has them.",
			Queries:     []Query{{"max by (outcome) (suffrage_operations_recorded)", "{{outcome}}"}}},
		{Title: "Open or planned for", Kind: Stat, Unit: Seconds, Width: 6, Height: 4,
			Description: "How long the operation has been open, and the plan the same; 0 where there is none.",
			Queries: []Query{
				{"max(suffrage_operation_age_seconds) or vector(0)", "operation"},
				{"max(suffrage_plan_age_seconds) or vector(0)", "plan"}}},
		{Title: "Decision", Kind: Timeline, Unit: Count, Words: kinds, Width: 24, Height: 4,
			Description: "steady: nothing needs doing. plan: would be started. step: an operation goes on. refused: held back.",
			Queries:     []Query{{decision, "decision"}}},
		{Title: "Steps of operations", Kind: Timeline, Unit: Count, Words: atStep, Width: 12, Height: 10,
			Description: "The step that the open operation is at. turn-back: it undoes what it did.",
			Queries:     []Query{{"max by (step) (suffrage_operation_step)", "{{step}}"}}},
		{Title: "Roles", Kind: Timeline, Unit: Count, Words: roles, Height: 10,
			Description: "What the operations changed.",
			Queries:     []Query{{roleOf(""), "{{host}}"}}},
		{Title: "What holds, and for how long", Kind: Series, Unit: Seconds, Min: &zero, Height: 10,
			Description: "Refusals by code and subject. docs/refusals.md says what lifts each.",
			Queries:     []Query{{"max by (code, subject) (suffrage_refusal_age_seconds)", "{{code}} {{subject}}"}}},
		{Title: "Refusals that began, within the hour", Kind: Series, Unit: Count, Min: &zero, Height: 10,
			Description: "By code. Many: something swings around a limit.",
			Queries:     []Query{{"sum by (code) (increase(suffrage_refusals_total[1h]))", "{{code}}"}}},
		{Title: "Worst round trip among the voters", Kind: Series, Unit: Seconds, Min: &zero,
			Description: "What a swap is to lower: p99 of the slowest pair of voters.",
			Queries: []Query{
				{"max(max by (host, peer) (suffrage_rtt_p99_seconds) and on (host) (" + voters + `) and on (peer) label_replace(` + voters + `, "peer", "$1", "host", "(.*)"))`, "p99"},
				{"max(suffrage_rtt_limit_seconds)", "limit"}}},
		{Title: "Changes of the decision, within the hour", Kind: Series, Unit: Count, Min: &zero,
			Description: "Decisions that said something else than the one before.",
			Queries:     []Query{{"sum(increase(suffrage_decision_changes_total[1h]))", "changes"}}},
		{Title: "Rounds", Kind: Series, Unit: Seconds, Min: &zero,
			Description: "How long the leading controller takes to gather and decide. Near controller.host_timeout: some host does not answer.",
			Queries: []Query{
				{"histogram_quantile(0.5, sum by (le) (rate(suffrage_round_seconds_bucket[$__rate_interval])))", "half"},
				{"histogram_quantile(0.99, sum by (le) (rate(suffrage_round_seconds_bucket[$__rate_interval])))", "p99"}}},
		{Title: "Decisions that left no record", Kind: Series, Unit: Count, Min: &zero,
			Description: "Since each controller started. Above 0: see its log and the disk.",
			Queries:     []Query{{"suffrage_record_failures_total", "{{instance}}"}}},
	}
	return Dashboard{UID: "suffrage-swaps", Title: "Suffrage: swaps and refusals",
		Description: "What was decided, what held it back, what was done and what it brought.",
		Panels:      append(panels, cost("The controllers' own cost", `job="suffrage-controller"`, "{{instance}}")...)}
}
