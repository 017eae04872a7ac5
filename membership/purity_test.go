package membership

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// allowed are the packages that membership may import, each with its reason. A
// list of what is allowed cannot forget anything, as one of what is forbidden
// would.
var allowed = map[string]string{
	"bytes":            "lines of a file that was read by the caller",
	"cmp":              "order",
	"encoding":         "the interface of what reads itself from text",
	"encoding/json":    "inputs and decisions have a JSON form; no file is opened",
	"errors":           "errors are values",
	"fmt":              "texts; fmt.Print is refused below",
	"io":               "the writer that the caller gives to WriteInputs",
	"maps":             "keys, sorted before use",
	"math":             "whether a figure is infinite",
	"strconv":          "rounding a figure to the digits that it has",
	"reflect":          "the keys of the JSON form are those of the structs",
	"slices":           "order",
	"strings":          "texts",
	"suffrage/fitness": "what the numbers mean; pure itself",
	"time":             "durations, and times that are arguments; the clock is refused below",
	"unicode":          "which texts can be printed",
}

// refused are the names of allowed packages that would break the package's
// promise, each with its reason.
var refused = map[string]string{
	"time.Now":       "the time is an argument, or a recorded decision could not be made again",
	"time.Since":     "reads the clock",
	"time.Until":     "reads the clock",
	"time.Sleep":     "waits by the clock",
	"time.After":     "waits by the clock",
	"time.AfterFunc": "waits by the clock",
	"time.Tick":      "waits by the clock",
	"time.NewTimer":  "waits by the clock",
	"time.NewTicker": "waits by the clock",
	"time.Local":     "depends on the host that runs it",
	"fmt.Print":      "pure code does not speak; callers log",
	"fmt.Printf":     "pure code does not speak; callers log",
	"fmt.Println":    "pure code does not speak; callers log",
}

func TestPure(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			path, _ := strconv.Unquote(i.Path.Value)
			if _, ok := allowed[path]; !ok || i.Name != nil {
				t.Errorf("%s imports %s; membership is pure and imports, by their own names, only what purity_test.go lists", set.Position(i.Pos()), path)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok {
					if why := refused[x.Name+"."+n.Sel.Name]; why != "" {
						t.Errorf("%s uses %s.%s: %s", set.Position(n.Pos()), x.Name, n.Sel.Name, why)
					}
				}
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine: the same inputs must give the same decision", set.Position(n.Pos()))
			}
			return true
		})
	}
}
