package control

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"suffrage/membership"
)

// Recorder keeps the inputs of changed decisions, so that any of them can be
// decided again with `suffrage replay`. The directory never holds more than
// MaxFiles files nor MaxBytes bytes: the oldest go first.
type Recorder struct {
	Dir      string
	MaxFiles int
	MaxBytes int64
}

// suffix tells the recorder's own files from others, which it never touches.
const suffix = ".inputs.json"

// Keep writes the inputs of one decision whole or not at all.
func (r *Recorder) Keep(in membership.Inputs, d membership.Decision) error {
	if err := os.MkdirAll(r.Dir, 0o750); err != nil {
		return fmt.Errorf("control: keep inputs: %w", err)
	}
	var b bytes.Buffer
	if err := membership.WriteInputs(&b, in); err != nil {
		return err
	}
	if err := r.prune(1, int64(b.Len())); err != nil {
		return err
	}
	name := d.At.UTC().Format("20060102T150405.000000Z") + "-" + string(d.Kind) + suffix
	return r.write(filepath.Join(r.Dir, name), b.Bytes())
}

// unfinished begins the names of files that do not have theirs yet.
const unfinished = ".keep-"

func (r *Recorder) write(path string, data []byte) error {
	f, err := os.CreateTemp(r.Dir, unfinished+"*")
	if err != nil {
		return fmt.Errorf("control: keep inputs: %w", err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync() // or a power cut leaves an empty file under the final name
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("control: keep inputs in %s: %w; free space there, or set controller.records elsewhere", r.Dir, err)
	}
	return nil
}

// prune makes room for files more, bytes more.
func (r *Recorder) prune(files int, bytes int64) error {
	entries, err := os.ReadDir(r.Dir) // sorted by name, which is by time
	if err != nil {
		return fmt.Errorf("control: keep inputs: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), unfinished) { // of a controller that was killed
			os.Remove(filepath.Join(r.Dir, e.Name()))
		}
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !strings.HasSuffix(e.Name(), suffix) })
	sizes := make([]int64, len(entries))
	for i, e := range entries {
		if info, err := e.Info(); err == nil {
			sizes[i] = info.Size()
		}
		bytes += sizes[i]
	}
	for i, e := range entries {
		if len(entries)-i+files <= r.MaxFiles && bytes <= r.MaxBytes {
			break
		}
		if err := os.Remove(filepath.Join(r.Dir, e.Name())); err != nil {
			return fmt.Errorf("control: keep inputs: %w", err)
		}
		bytes -= sizes[i]
	}
	return nil
}
