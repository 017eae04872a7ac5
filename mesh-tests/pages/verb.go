package pages

// verbs are the commands of suffrage that pages name within their text and that no test
// types from a fence, each with the test that runs it in words of its own.
var verbs = map[string]string{
	"agent":           "TestClusterFromCreateToReset",
	"config example":  "TestScript",
	"member":          "TestClusterFromCreateToReset",
	"operations stop": "TestFleet",
	"regrade":         "TestRegrade",
	"remove-dead":     "TestFleetLosesAHost",
	"standby remove":  "TestStandby",
	"top":             "TestTopOnATerminal",
}

// Verb says which test runs a verb, such as "operations withdraw", in words of its own;
// nothing where none has to.
func Verb(verb string) string { return verbs[verb] }

// Verbs are all that Verb knows.
func Verbs() map[string]string { return verbs }

// Typing reports whether a test takes what it types from the pages.
func Typing(test string) bool {
	switch test {
	case Run, Install, Hosts, K3sHost, Kubernetes, Go:
		return true
	}
	return false
}
