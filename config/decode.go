// Package config reads files that a person writes: YAML, strictly, with errors that can be acted on.
//
// The contract:
//
//   - Every problem of a file is reported at once, up to 50 of them, each as an *Error with the file,
//     the line, the dotted key ("hosts[2].address"), what was found and what is allowed.
//   - A key that the Go struct does not know is an error that names the nearest known key. A key
//     written twice is an error. A key written without a value is an error where a plain value is
//     expected, and means "nothing under it" where keys or a list are.
//   - Keys that are not written keep what the caller put in the struct before (its defaults). A list
//     that is written replaces the default list.
//   - A file holds one document of at most 1 MiB. Anchors, aliases, merge keys and explicit tags are
//     refused: they save typing in files far longer than ours, and make a line mean something that
//     cannot be seen on it (and one kilobyte mean a gigabyte).
//   - Numbers are decimal: YAML reads 010 as eight, which no person means.
//
// Once a file reads cleanly, the Validate method of the struct is called if it has one. It returns
// Problems, joined with errors.Join; they get the file and the line of their key here. Values are
// judged only then, since a misspelt key would otherwise also show up as a missing value.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"syscall"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// MaxSize is the largest file read, in bytes. A roster of 1000 hosts is about 150 KiB.
const MaxSize = 1 << 20

// Decode reads data, the content of the named file, into the struct that into points to. The file
// name is used in errors only. After an error into may be filled in part and must not be used.
func Decode(file string, data []byte, into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("config: Decode into %T, want a pointer to a struct", into))
	}
	w := &walk{file: file, lines: map[string]int{}}
	root, err := parse(file, data)
	if err != nil {
		return err
	}
	if root != nil {
		w.value(root, v.Elem(), "")
	}
	if len(w.problems) == 0 {
		if c, ok := into.(interface{ Validate() error }); ok {
			w.place(c.Validate())
		}
	}
	return w.err()
}

// Load reads the file at path with Decode. A missing file gives an error that is fs.ErrNotExist.
func Load(path string, into any) error {
	data, err := read(path)
	if err != nil {
		return err
	}
	return Decode(path, data, into)
}

func read(path string) ([]byte, error) {
	// Without O_NONBLOCK, opening a named pipe waits for a writer that may never come.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("config: read %s: %w: create it, or name the right file", path, fs.ErrNotExist)
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("config: read %s: %w: run as the user that owns it, or let this one read it", path, fs.ErrPermission)
	}
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("config: read %s: not a regular file (%s): name a file", path, info.Mode().Type())
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return data, nil
}

// parse gives the root node, or nil for a file without content.
func parse(file string, data []byte) (*yaml.Node, error) {
	if len(data) > MaxSize {
		return nil, &Error{File: file, Found: "more than 1 MiB", Allowed: "at most 1 MiB"}
	}
	if line := unprintable(data); line > 0 {
		return nil, &Error{File: file, Line: line, Found: "bytes that are not text", Allowed: "UTF-8 text without control characters"}
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, syntaxError(file, err)
	}
	if err := dec.Decode(&more); err == nil {
		return nil, &Error{File: file, Line: more.Line, Found: "a second document (---)", Allowed: "one document in a file"}
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxError(file, err)
	}
	if len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null" && doc.Content[0].Style&yaml.TaggedStyle == 0 {
		return nil, nil
	}
	return doc.Content[0], nil
}

// unprintable gives the line of the first character that cannot be in a text file, or 0. The parser
// refuses these too, but without a line.
func unprintable(data []byte) int {
	line := 1
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case r == '\n':
			line++
		case r == utf8.RuneError && n == 1, r != '\t' && r != '\r' && unicode.IsControl(r):
			return line
		}
		data = data[n:]
	}
	return 0
}

var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntaxError gives the parser's message a place. The parser counts from the start of the construct
// that it could not finish, so the line can be one or two early.
func syntaxError(file string, err error) error {
	e := &Error{File: file, What: "not YAML: " + err.Error(), err: err}
	if m := yamlError.FindStringSubmatch(err.Error()); m != nil {
		e.Line = 1 // the parser leaves the first line out
		if m[1] != "" {
			e.Line, _ = strconv.Atoi(m[1])
		}
		e.What = "not YAML: " + m[2]
	}
	return e
}
