package etcd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// strict reads one JSON value of at most maxMark bytes, see strictly.
func strict(data []byte, into any) error { return strictly(data, maxMark, into) }

// strictly reads one JSON value without unknown keys, without a key twice and
// with nothing after it. encoding/json alone takes "MODE" for mode and lets the
// last of two equal keys win, so that what a person reads is not what counts;
// all our keys are lower-case ASCII, so any other is refused first.
func strictly(data []byte, most int, into any) error {
	if len(data) > most {
		return fmt.Errorf("%d bytes; at most %d", len(data), most)
	}
	if err := plainKeys(json.NewDecoder(bytes.NewReader(data))); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the value")
	}
	return nil
}

// plainKeys walks one value and says which key is given twice or is none of
// ours by its letters.
func plainKeys(d *json.Decoder) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	switch t {
	case json.Delim('['):
		for d.More() {
			if err := plainKeys(d); err != nil {
				return err
			}
		}
	case json.Delim('{'):
		given := map[string]bool{}
		for d.More() {
			t, err := d.Token()
			if err != nil {
				return err
			}
			key, _ := t.(string)
			if given[key] {
				return fmt.Errorf("key %.40q is given twice", key)
			}
			given[key] = true
			for _, c := range []byte(key) {
				if c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
					return fmt.Errorf("unknown key %.40q", key)
				}
			}
			if err := plainKeys(d); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, err = d.Token()
	return err
}
