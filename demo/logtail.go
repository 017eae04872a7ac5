package demo

import (
	"bytes"
	"io"
	"os"
	"strings"
)

const (
	tailLines = 12
	tailBytes = 8 << 10
)

// logTail is the last lines of a log file, indented, for an error message.
func logTail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "  (" + err.Error() + ")"
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return "  (" + err.Error() + ")"
	}
	from := max(0, size-tailBytes)
	b := make([]byte, size-from)
	n, err := f.ReadAt(b, from)
	if err != nil && err != io.EOF {
		return "  (" + err.Error() + ")"
	}
	b = bytes.TrimRight(b[:n], "\n")
	if len(b) == 0 {
		return "  (empty)"
	}
	lines := strings.Split(string(b), "\n")
	if from > 0 && len(lines) > 1 {
		lines = lines[1:] // cut in the middle
	}
	lines = lines[max(0, len(lines)-tailLines):]
	return "  " + strings.Join(lines, "\n  ")
}
