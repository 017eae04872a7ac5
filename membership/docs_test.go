package membership

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func page(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Every code has its place in docs/refusals.md, and every place there its code.
func TestRefusalsPage(t *testing.T) {
	text := page(t, "refusals.md")
	var documented []string
	for _, m := range regexp.MustCompile(`(?m)^### ([a-z-]+)$`).FindAllStringSubmatch(text, -1) {
		documented = append(documented, m[1])
	}
	slices.Sort(documented)
	if diff := cmp.Diff(codes(t), documented); diff != "" {
		t.Errorf("codes.go and docs/refusals.md differ (-codes +page):\n%s", diff)
	}
}

// codes are the constants of type Code in codes.go, sorted.
func codes(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			code, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, code)
		}
		return true
	})
	slices.Sort(out)
	return out
}

// Every code is given by some script, so that each is seen to work.
func TestEveryCodeIsGivenByAScript(t *testing.T) {
	var scripts strings.Builder
	files, err := os.ReadDir("testdata/decide")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile("testdata/decide/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		scripts.Write(data)
	}
	for _, c := range codes(t) {
		if !regexp.MustCompile(`(?m)^(hold|owner|reject)( for \S+)? ` + c + `[(:]`).MatchString(scripts.String()) {
			t.Errorf("no script in testdata/decide is refused with %s", c)
		}
	}
}

// Every key of the JSON forms stands in docs/inputs.md, in code quotes.
func TestInputsPage(t *testing.T) {
	text := page(t, "inputs.md")
	for _, v := range []any{Inputs{}, Decision{}, Moment{}} {
		keysOf(reflect.TypeOf(v), func(path, key string) {
			if !regexp.MustCompile("`([a-z_]+\\.)?" + key + "`").MatchString(text) {
				t.Errorf("docs/inputs.md does not have `%s` (%s.%s)", key, path, key)
			}
		})
	}
}

// keysOf visits every json key of a struct and of those inside it.
func keysOf(t reflect.Type, visit func(path, key string)) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for i := range t.NumField() {
		if key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); key != "" {
			visit(t.String(), key)
			keysOf(t.Field(i).Type, visit)
		}
	}
}
