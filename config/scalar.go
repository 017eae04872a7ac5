package config

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

var (
	decimal      = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)
	plainKey     = regexp.MustCompile(`^[A-Za-z0-9_/-]+$`)
	durationType = reflect.TypeFor[time.Duration]()
)

// scalar reads one plain value.
func (w *walk) scalar(n *yaml.Node, v reflect.Value, key string) {
	if v.Type() == durationType {
		w.duration(n, v, key)
		return
	}
	switch kind := v.Kind(); {
	case kind == reflect.String:
		w.str(n, v, key)
	case kind == reflect.Bool:
		w.boolean(n, v, key)
	case v.CanInt(), v.CanUint():
		w.whole(n, v, key)
	case v.CanFloat():
		w.number(n, v, key)
	default:
		panic(fmt.Sprintf("config: %s: cannot read into a %s", key, v.Type()))
	}
}

// maxText bounds a value with a type of its own (an address, a duration), whose error repeats it.
const maxText = 512

// text hands the value as written to a type that reads text.
func (w *walk) text(n *yaml.Node, u encoding.TextUnmarshaler, key string) {
	if n.Kind != yaml.ScalarNode || isNull(n) {
		w.refuse(n, key, describe(n), "one value")
		return
	}
	if len(n.Value) > maxText {
		w.refuse(n, key, fmt.Sprintf("text of %d bytes", len(n.Value)), fmt.Sprintf("at most %d bytes", maxText))
		return
	}
	err := u.UnmarshalText([]byte(n.Value))
	if err == nil {
		return
	}
	e := &Error{Line: n.Line, Key: key, Found: clip(n.Value), Allowed: err.Error(), err: err}
	if k, ok := errors.AsType[keyed](err); ok {
		_, e.Found, e.Allowed = k.Problem()
	} else if e.What = err.Error(); !strings.Contains(e.What, e.Found) {
		e.What = fmt.Sprintf("found %q: %v", e.Found, err)
	}
	w.add(e)
}

// str takes text, and numbers and dates as they are written: the version 3.10 is not 3.1.
func (w *walk) str(n *yaml.Node, v reflect.Value, key string) {
	switch tag := n.ShortTag(); {
	case n.Kind != yaml.ScalarNode || tag == "!!null" || tag == "!!bool":
		w.refuse(n, key, describe(n), "text (in quotes if it reads as something else)")
	default:
		v.SetString(n.Value)
	}
}

func (w *walk) boolean(n *yaml.Node, v reflect.Value, key string) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
		w.refuse(n, key, describe(n), "true or false")
		return
	}
	v.SetBool(strings.EqualFold(n.Value, "true"))
}

func (w *walk) whole(n *yaml.Node, v reflect.Value, key string) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" && n.ShortTag() != "!!float" || !decimal.MatchString(n.Value) {
		w.refuse(n, key, describe(n), "a whole number in decimal")
		return
	}
	bits, least, most := v.Type().Bits(), int64(0), uint64(0)
	if v.CanInt() {
		if i, err := strconv.ParseInt(n.Value, 10, bits); err == nil {
			v.SetInt(i)
			return
		}
		least, most = -1<<(bits-1), 1<<(bits-1)-1
	} else {
		if u, err := strconv.ParseUint(strings.TrimPrefix(n.Value, "+"), 10, bits); err == nil {
			v.SetUint(u)
			return
		}
		most = 1<<bits - 1
	}
	w.refuse(n, key, clip(n.Value), fmt.Sprintf("a whole number from %d to %d", least, most))
}

func (w *walk) number(n *yaml.Node, v reflect.Value, key string) {
	f, err := strconv.ParseFloat(n.Value, v.Type().Bits())
	tag := n.ShortTag()
	if n.Kind != yaml.ScalarNode || tag != "!!int" && tag != "!!float" || err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		w.refuse(n, key, describe(n), "a number in decimal")
		return
	}
	v.SetFloat(f)
}

func (w *walk) duration(n *yaml.Node, v reflect.Value, key string) {
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		w.refuse(n, key, describe(n), "a duration with its unit, such as 500ms, 3s or 1h30m")
		return
	}
	v.SetInt(int64(d))
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys with values"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "no value"
	case "!!str":
		return fmt.Sprintf("text %q", clip(n.Value))
	}
	return clip(n.Value)
}

// segment is a key as it stands in a dotted path: quoted where it would not be clear otherwise.
func segment(key string) string {
	if plainKey.MatchString(key) {
		return clip(key)
	}
	return strconv.Quote(clip(key))
}

// clip bounds what an error repeats of a file.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
