package membership

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// strict decodes JSON. It is here because encoding/json takes "VERSION" for
// version, lets the last of two equal keys win, and cannot say at which line a
// key is unknown: each of the three would let a file that a person edited decide
// on something else than what is written in it.
type strict struct {
	*json.Decoder
	fields map[reflect.Type]map[string]int // of each struct, the place of each key
}

// misread says what is wrong, and where: view.members[0].id.
type misread struct{ path, what string }

func (e *misread) Error() string { return strings.TrimPrefix(e.path, ".") + ": " + e.what }

// under puts a step before the path of an error.
func under(step string, err error) error {
	if m := (*misread)(nil); errors.As(err, &m) {
		return &misread{step + m.path, m.what}
	}
	return &misread{step, err.Error()}
}

// decode reads the next value into v.
func (d strict) decode(v reflect.Value) error {
	switch {
	case isLeaf(v.Type()):
		err := d.Decode(v.Addr().Interface())
		if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
			return fmt.Errorf("found %s, want %s", kind.Value, kind.Type)
		}
		return err
	case v.Kind() == reflect.Pointer:
		// None of them can be null: what is not there is left out.
		v.Set(reflect.New(v.Type().Elem()))
		return d.decode(v.Elem())
	case v.Kind() == reflect.Slice:
		return d.list(v)
	}
	return d.object(v)
}

func isLeaf(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Slice, reflect.Pointer:
		p := reflect.PointerTo(t)
		return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	}
	return true
}

func (d strict) list(v reflect.Value) error {
	open, err := d.Token()
	if err != nil || open == nil { // null is an empty list
		return err
	}
	if open != json.Delim('[') {
		return fmt.Errorf("found %v, want a list", open)
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	for i := 0; d.More(); i++ {
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		if err := d.decode(v.Index(i)); err != nil {
			return under(fmt.Sprintf("[%d]", i), err)
		}
	}
	_, err = d.Token()
	return err
}

func (d strict) object(v reflect.Value) error {
	open, err := d.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return fmt.Errorf("found %v, want an object", open)
	}
	fields := d.of(v.Type())
	given := make([]bool, v.NumField())
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string) // in a syntax that was checked it is one
		i, known := fields[key]
		switch {
		case !known:
			return under(fmt.Sprintf(".%.40s", key), errors.New("unknown key; known there: "+strings.Join(sorted(fields), ", ")))
		case given[i]:
			return under("."+key, errors.New("given twice"))
		}
		given[i] = true
		if err := d.decode(v.Field(i)); err != nil {
			return under("."+key, err)
		}
	}
	_, err = d.Token()
	return err
}

func (d strict) of(t reflect.Type) map[string]int {
	fields, seen := d.fields[t]
	if seen {
		return fields
	}
	fields = map[string]int{}
	for i := range t.NumField() {
		if key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); key != "" {
			fields[key] = i
		}
	}
	d.fields[t] = fields
	return fields
}

func sorted(fields map[string]int) []string {
	keys := make([]string, 0, len(fields))
	for k := range fields {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
