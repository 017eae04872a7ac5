package config

import (
	"errors"
	"fmt"
	"strings"
)

// Error is one problem of one file.
type Error struct {
	File    string
	Line    int    // from 1; 0 where no line can be named
	Key     string // dotted, with list positions from 0: "hosts[2].address"; empty for the whole file
	Found   string
	Allowed string
	What    string // the whole sentence, where "found …; allowed: …" would not say it

	err error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	b.WriteString(": ")
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	b.WriteString(sentence(e.What, e.Found, e.Allowed))
	return b.String()
}

// Unwrap gives the error of the type or of the Validate method that found the problem, if one did.
func (e *Error) Unwrap() error { return e.err }

// Problem is what a Validate method returns for one key: Decode adds file and line. Found is what
// the file says ("3ms"), Allowed what it may say, with unit and range ("10ms to 1h").
type Problem struct{ Key, Found, Allowed string }

func (p Problem) Error() string {
	s := sentence("", p.Found, p.Allowed)
	if p.Key == "" {
		return s
	}
	return p.Key + ": " + s
}

// Problem is the method by which Decode knows an error that belongs to a key. Packages that must not
// import this one (it reads files) give an error of their own the same method.
func (p Problem) Problem() (key, found, allowed string) { return p.Key, p.Found, p.Allowed }

type keyed interface {
	error
	Problem() (key, found, allowed string)
}

// Under puts key in front of the keys of every Problem in err, for a struct that holds another one
// with its own Validate: errors.Join(config.Under("agent", c.Agent.Validate()), …).
func Under(key string, err error) error {
	var out []error
	for _, e := range leaves(err) {
		if k, ok := errors.AsType[keyed](e); ok {
			name, found, allowed := k.Problem()
			e = Problem{Key: join(key, name), Found: found, Allowed: allowed}
		} else {
			e = fmt.Errorf("%s: %w", key, e)
		}
		out = append(out, e)
	}
	return errors.Join(out...)
}

func sentence(what, found, allowed string) string {
	switch {
	case what != "":
		return what
	case found == "":
		return "allowed: " + allowed
	case allowed == "":
		return "found " + found
	}
	return "found " + found + "; allowed: " + allowed
}

// leaves takes apart what errors.Join put together.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	j, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range j.Unwrap() {
		out = append(out, leaves(e)...)
	}
	return out
}

func join(parent, key string) string {
	if parent == "" || key == "" || strings.HasPrefix(key, "[") {
		return parent + key
	}
	return parent + "." + key
}
