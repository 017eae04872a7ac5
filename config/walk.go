package config

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxProblems bounds the report; a person mends a few and runs again.
const maxProblems = 50

// walk goes through the nodes of a file and the Go value beside them.
type walk struct {
	file     string
	lines    map[string]int // line of every key seen
	problems []error
	dropped  int
}

func (w *walk) add(e *Error) {
	e.File = w.file
	if len(w.problems) == maxProblems {
		w.dropped++
		return
	}
	w.problems = append(w.problems, e)
}

func (w *walk) refuse(n *yaml.Node, key, found, allowed string) {
	w.add(&Error{Line: n.Line, Key: key, Found: found, Allowed: allowed})
}

func (w *walk) err() error {
	slices.SortStableFunc(w.problems, func(a, b error) int {
		return cmp.Compare(a.(*Error).Line, b.(*Error).Line)
	})
	if w.dropped > 0 {
		w.problems = append(w.problems, fmt.Errorf("%s: and %d more problems", w.file, w.dropped))
	}
	return errors.Join(w.problems...)
}

func (w *walk) value(n *yaml.Node, v reflect.Value, key string) {
	w.lines[key] = n.Line
	if !w.plain(n, key) {
		return
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		w.text(n, u, key)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if isNull(n) {
			return
		}
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		w.value(n, v.Elem(), key)
	case reflect.Struct:
		w.structure(n, v, key)
	case reflect.Map:
		w.mapping(n, v, key)
	case reflect.Slice:
		w.list(n, v, key)
	default:
		w.scalar(n, v, key)
	}
}

// plain refuses what makes a line mean something that cannot be seen on it.
func (w *walk) plain(n *yaml.Node, key string) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		w.refuse(n, key, "an alias (*"+segment(n.Value)+")", "the value itself, written out")
	case n.Anchor != "":
		w.refuse(n, key, "an anchor (&"+segment(n.Anchor)+")", "the value without it; write values out where they are used")
	case n.Style&yaml.TaggedStyle != 0:
		w.refuse(n, key, fmt.Sprintf("a tag (%q)", clip(n.Tag)), "the value without it")
	default:
		return true
	}
	return false
}

func (w *walk) structure(n *yaml.Node, v reflect.Value, key string) {
	if isNull(n) {
		return
	}
	fields, names := fieldsOf(v)
	w.pairs(n, key, func(k, val *yaml.Node, path string) {
		field, ok := fields[k.Value]
		if !ok {
			what := "unknown key"
			if near := nearest(k.Value, names); near != "" {
				what += fmt.Sprintf("; did you mean %q?", near)
			} else {
				what += ";"
			}
			known := strings.Join(names, ", ")
			w.add(&Error{Line: k.Line, Key: path, Found: k.Value, Allowed: known, What: what + " known keys here: " + known})
			return
		}
		w.value(val, field, path)
	})
}

func (w *walk) mapping(n *yaml.Node, v reflect.Value, key string) {
	if isNull(n) {
		return
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	w.pairs(n, key, func(k, val *yaml.Node, path string) {
		name := reflect.New(v.Type().Key()).Elem()
		elem := reflect.New(v.Type().Elem()).Elem()
		if old := v.MapIndex(reflect.ValueOf(k.Value).Convert(v.Type().Key())); old.IsValid() {
			elem.Set(old)
		}
		name.SetString(k.Value)
		w.value(val, elem, path)
		v.SetMapIndex(name, elem)
	})
}

// pairs calls do for each key that is text and stands there for the first time.
func (w *walk) pairs(n *yaml.Node, key string, do func(k, v *yaml.Node, path string)) {
	if n.Kind != yaml.MappingNode {
		w.refuse(n, key, describe(n), "keys with values")
		return
	}
	first := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" || k.Anchor != "" || k.Style&yaml.TaggedStyle != 0 {
			w.refuse(k, key, "a key that is not plain text", "plain text as keys (no merge key <<, no anchor, alias or tag)")
			continue
		}
		path := join(key, segment(k.Value))
		if line, twice := first[k.Value]; twice {
			w.add(&Error{Line: k.Line, Key: path, Found: "the key again", Allowed: "each key once",
				What: fmt.Sprintf("key written twice; the first is on line %d, keep one of them", line)})
			continue
		}
		first[k.Value] = k.Line
		do(k, v, path)
		w.lines[path] = k.Line // a value may start a line further down
	}
}

func (w *walk) list(n *yaml.Node, v reflect.Value, key string) {
	if isNull(n) {
		v.SetZero()
		return
	}
	if n.Kind != yaml.SequenceNode {
		w.refuse(n, key, describe(n), "a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		w.value(item, v.Index(i), fmt.Sprintf("%s[%d]", key, i))
	}
}

// fieldsOf gives a struct's fields by their YAML key, and the keys in the order of declaration.
func fieldsOf(v reflect.Value) (fields map[string]reflect.Value, names []string) {
	fields = map[string]reflect.Value{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		tag, rest, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if tag == "-" || !f.IsExported() {
			continue
		}
		if strings.Contains(rest, "inline") {
			inner, more := fieldsOf(v.Field(i))
			for _, name := range more {
				fields[name] = inner[name]
			}
			names = append(names, more...)
			continue
		}
		if tag == "" {
			tag = strings.ToLower(f.Name) // as yaml does
		}
		fields[tag] = v.Field(i)
		names = append(names, tag)
	}
	return fields, names
}

// place gives what a Validate method returned a file and a line: that of the key, or of the nearest
// key above it that is written.
func (w *walk) place(err error) {
	for _, leaf := range leaves(err) {
		e := &Error{What: leaf.Error(), err: leaf}
		if k, ok := errors.AsType[keyed](leaf); ok {
			e.Key, e.Found, e.Allowed = k.Problem()
			e.What, e.Line = "", w.line(e.Key)
		}
		w.add(e)
	}
}

func (w *walk) line(key string) int {
	for {
		if line, ok := w.lines[key]; ok || key == "" {
			return line
		}
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
}
