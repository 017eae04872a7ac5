package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// configArgs gives what a configuration file and its drop-ins say, as flags, and
// the keys that are no flags: K3s warns of them and goes on. Drop-ins lie in
// FILE.d, end in .yaml or .yml and are read after the file in the order of their
// names. A later file replaces what an earlier one says of a key, or adds to it
// where the key ends in "+". No file at all is no error.
//
// K3s: pkg/configfilearg/parser.go.
func configArgs(file string, known func(flag string) bool) (args, unknown []string, err error) {
	files, err := configFiles(file)
	if err != nil {
		return nil, nil, err
	}
	var order []string
	values := map[string]any{}
	for _, f := range files {
		if err := mergeFile(f, &order, values); err != nil {
			return nil, nil, err
		}
	}
	for _, key := range order {
		if !known(key) {
			unknown = append(unknown, key)
			continue
		}
		list, many := values[key].([]any)
		if !many {
			list = []any{values[key]}
		}
		for _, v := range list {
			args = append(args, "--"+key+"="+text(v))
		}
	}
	return args, unknown, nil
}

func configFiles(file string) ([]string, error) {
	var files []string
	switch _, err := os.Stat(file); {
	case err == nil:
		files = append(files, file)
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	dropins, err := os.ReadDir(file + ".d") // by name
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, d := range dropins {
		switch strings.ToLower(filepath.Ext(d.Name())) {
		case ".yaml", ".yml":
			if !d.IsDir() {
				files = append(files, filepath.Join(file+".d", d.Name()))
			}
		}
	}
	return files, nil
}

func mergeFile(file string, order *[]string, values map[string]any) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(content, &doc); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if len(doc.Content) == 0 { // empty, or comments only
		return nil
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return fmt.Errorf("%s: want keys with values", file)
	}
	for i := 0; i+1 < len(top.Content); i += 2 {
		var v any
		if err := top.Content[i+1].Decode(&v); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		key, more := strings.CutSuffix(top.Content[i].Value, "+")
		old, seen := values[key]
		if !seen {
			*order = append(*order, key)
		}
		if seen && more {
			v = append(listOf(old), listOf(v)...)
		}
		values[key] = v
	}
	return nil
}

func listOf(v any) []any {
	if list, is := v.([]any); is {
		return list
	}
	if strings.TrimSpace(text(v)) == "" {
		return nil
	}
	return []any{v}
}

func text(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}
