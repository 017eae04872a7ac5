package host

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every code and every verb has its place in docs/orders.md.
func TestOrdersPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/orders.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("result.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`membership\.Code = "([a-z-]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(codes) < 8 {
		t.Fatalf("found only %d codes", len(codes))
	}
	for _, c := range codes {
		if !strings.Contains(string(page), "| `"+c[1]+"` |") {
			t.Errorf("docs/orders.md does not have %s", c[1])
		}
	}
	for _, f := range []string{roleFile, fenceFile, termFile, gradeFile, joinFile, clusterFile, startsFile, "server.lock"} {
		if !strings.Contains(string(page), "| `"+f+"` |") {
			t.Errorf("docs/orders.md does not have %s", f)
		}
	}
}
