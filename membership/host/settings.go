package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v2"
)

// Settings are what K3s gets for its flags, by their long names: all values of
// one in K3s's order. Of a flag that takes one the last counts.
type Settings map[string][]Setting

// Setting is one value, and the file that has it or CommandLine.
type Setting struct{ Value, From string }

// CommandLine is where a Setting is from that no file has.
const CommandLine = "the command line"

// ReadSettings reads what K3s reads, but for the drop-ins named: config.yaml, then
// the drop-ins in dir, config.yaml.d, in the order of their names' bytes. A later
// file takes the place of an earlier one, key by key, or adds to it with "key+"
// (K3s: pkg/configfilearg). With K3s's own reader of YAML, to which yes and on are
// true.
func ReadSettings(dir string, without ...string) (Settings, error) {
	files := []string{strings.TrimSuffix(dir, ".d")}
	dropIns, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("host: K3s's settings: %w", err)
	}
	for _, d := range dropIns {
		if ext := strings.ToLower(filepath.Ext(d.Name())); !d.IsDir() && (ext == ".yaml" || ext == ".yml") && !slices.Contains(without, d.Name()) {
			files = append(files, filepath.Join(dir, d.Name()))
		}
	}
	s := Settings{}
	for _, file := range files {
		if err := s.read(file); err != nil {
			return nil, fmt.Errorf("host: K3s's settings: %w", err)
		}
	}
	return s, nil
}

// read adds one file; one that is not there says nothing.
func (s Settings) read(file string) error {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("larger than %d KiB", maxFile>>10)
	}
	var keys yaml.MapSlice
	if err == nil {
		err = yaml.Unmarshal(data, &keys)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, k := range keys {
		name, adds := strings.CutSuffix(text(k.Key), "+")
		list, is := k.Value.([]any)
		if !is {
			list = []any{k.Value}
		}
		var values []Setting
		for _, v := range list {
			values = append(values, Setting{text(v), file})
		}
		name = long(name)
		if adds {
			values = append(s[name], values...)
		}
		s[name] = values
	}
	return nil
}

// text is a value as K3s makes a flag's of it.
func text(v any) string {
	if v == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprint(v))
}

// long is a flag's long name, of those that are asked for here.
func long(name string) string {
	switch name {
	case "c":
		return "config"
	case "d":
		return "data-dir"
	case "i":
		return "node-ip"
	case "s":
		return "server"
	case "t":
		return "token"
	}
	return name
}

// switches take no value but one behind "=".
var switches = []string{"cluster-init", "disable-etcd", disableAPI, "disable-controller-manager", "disable-scheduler"}

// Add adds what a unit's command line says, which K3s reads after all files.
func (s Settings) Add(args []string) {
	if i := slices.Index(args, "server"); i >= 0 {
		args = args[i:] // before it are k3s's name and what runs it
	}
	for i := 0; i < len(args); i++ {
		name := strings.TrimPrefix(strings.TrimPrefix(args[i], "-"), "-")
		if name == args[i] || name == "" {
			continue
		}
		name, value, given := strings.Cut(name, "=")
		switch {
		case given:
		case slices.Contains(switches, name) || i+1 == len(args) || strings.HasPrefix(args[i+1], "-"):
			value = "true"
		default:
			i++
			value = args[i]
		}
		name = long(name)
		s[name] = append(s[name], Setting{value, CommandLine})
	}
}

// Last is the value that counts of a flag that takes one; without any, nothing.
func (s Settings) Last(flag string) Setting {
	if n := len(s[flag]); n > 0 {
		return s[flag][n-1]
	}
	return Setting{}
}

// On reports whether a switch is on. With a value that is neither true nor false
// K3s does not start.
func (s Settings) On(flag string) (bool, error) {
	if len(s[flag]) == 0 {
		return false, nil
	}
	last := s.Last(flag)
	on, err := strconv.ParseBool(last.Value)
	if err != nil {
		return false, fmt.Errorf("host: K3s's settings: %s: %s is %q: want true or false", last.From, flag, last.Value)
	}
	return on, nil
}

// Overriding is what goes before the file that Suffrage writes (k3sFile), now or
// once it is there: a drop-in in dir whose name is later, with one of its keys.
func (s Settings) Overriding(dir string) (flag string, by Setting) {
	for _, flag := range []string{"cluster-init", "server"} {
		if by := s.Last(flag); filepath.Dir(by.From) == filepath.Clean(dir) && filepath.Base(by.From) > k3sFile {
			return flag, by
		}
	}
	return "", Setting{}
}
