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

// decodeStrict decodes the next value into v. It is here because encoding/json
// takes "VERSION" for version, lets the last of two equal keys win, and cannot
// say at which line a key is unknown: each of the three would let a file that a
// person edited decide on something else than what is written in it.
//
// path is where v is, such as view.members[0].id.
func decodeStrict(d *json.Decoder, v reflect.Value, path string) error {
	switch {
	case isLeaf(v.Type()):
		if err := d.Decode(v.Addr().Interface()); err != nil {
			return fmt.Errorf("%s: %s", path, leafError(err))
		}
		return nil
	case v.Kind() == reflect.Pointer:
		// None of them can be null: what is not there is left out.
		v.Set(reflect.New(v.Type().Elem()))
		return decodeStrict(d, v.Elem(), path)
	case v.Kind() == reflect.Slice:
		return decodeList(d, v, path)
	}
	return decodeObject(d, v, path)
}

func isLeaf(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) ||
		!slices.Contains([]reflect.Kind{reflect.Struct, reflect.Slice, reflect.Pointer}, t.Kind())
}

func leafError(err error) string {
	if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
		return fmt.Sprintf("found %s, want %s", kind.Value, kind.Type)
	}
	return err.Error()
}

func decodeList(d *json.Decoder, v reflect.Value, path string) error {
	open, err := d.Token()
	if err != nil || open == nil { // null is an empty list
		return err
	}
	if open != json.Delim('[') {
		return fmt.Errorf("%s: found %v, want a list", path, open)
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	for i := 0; d.More(); i++ {
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		if err := decodeStrict(d, v.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

func decodeObject(d *json.Decoder, v reflect.Value, path string) error {
	open, err := d.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return fmt.Errorf("%s: found %v, want an object", path, open)
	}
	fields := jsonFields(v.Type())
	given := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string) // a syntax that was checked has only strings there
		at := strings.TrimPrefix(path+"."+key, ".")
		i, known := fields[key]
		switch {
		case !known:
			return fmt.Errorf("%.200s: unknown key; known there: %s", at, strings.Join(sortedKeys(fields), ", "))
		case given[key]:
			return fmt.Errorf("%s: given twice", at)
		}
		given[key] = true
		if err := decodeStrict(d, v.Field(i), at); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// jsonFields gives the place of each field by its key.
func jsonFields(t reflect.Type) map[string]int {
	fields := map[string]int{}
	for i := range t.NumField() {
		if key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); key != "" {
			fields[key] = i
		}
	}
	return fields
}

func sortedKeys(fields map[string]int) []string {
	keys := make([]string, 0, len(fields))
	for k := range fields {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
