package history

import (
	"strings"
	"testing"
)

func TestCheckReads(t *testing.T) {
	for name, test := range map[string]struct {
		history History
		want    string // of the error, empty for none
	}{
		"read at the end":                    {History{op(1, "put a", 1, 2), op(2, "get a", 3, 4)}, ""},
		"nobody read":                        {History{op(1, "put a", 1, 2)}, "nothing was read"},
		"no get had an answer":               {History{op(1, "put a", 1, 2), op(2, "get ?", 3, 4), op(2, "get ?", 5, 6)}, "had no answer"},
		"the last one had none":              {History{op(1, "put a", 1, 2), op(2, "get a", 3, 4), op(2, "get ?", 5, 6)}, "the last get, at 5ns, had no answer"},
		"an earlier one had none":            {History{op(1, "put a", 1, 2), op(2, "get ?", 3, 4), op(2, "get a", 5, 6)}, ""},
		"in whatever order they were noted":  {History{op(2, "get a", 5, 6), op(2, "get ?", 3, 4), op(1, "put a", 1, 2)}, ""},
		"written once more after that":       {History{op(1, "put a", 1, 2), op(2, "get a", 3, 4), op(1, "put b", 5, 6)}, "nobody looked"},
		"written once more, without answer":  {History{op(1, "put a", 1, 2), op(2, "get a", 3, 4), op(1, "put b ?", 5, 6)}, ""},
		"a key that is only written is none": {History{op(1, "put a", 1, 2), op(2, "get a", 3, 4), {Key: "made", Put: "x", Call: 5, Return: 6}}, ""},
	} {
		err := CheckReads(test.history)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: want %q, got %v", name, test.want, err)
		}
	}
}
