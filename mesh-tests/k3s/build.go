package k3s

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Build builds the double, unless this very one is there already, and gives its
// file. It is kept where mesh-tests/kube.sh keeps the API server; older ones are
// removed.
func Build() (string, error) {
	_, here, _, known := runtime.Caller(0)
	if !known {
		return "", fmt.Errorf("k3s: build the double: its sources are not known")
	}
	source := filepath.Join(filepath.Dir(here), "double")
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("k3s: build the double: %w", err)
	}
	key, err := keyOf(source)
	if err != nil {
		return "", fmt.Errorf("k3s: build the double: %w", err)
	}
	prefix := filepath.Join(cache, "suffrage", "k3s-double-")
	program := prefix + key
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	part := fmt.Sprintf("%s.%d", program, os.Getpid())
	cmd := exec.Command("go", "build", "-o", part, ".")
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("k3s: build the double: %w: %s", err, out)
	}
	old, err := filepath.Glob(prefix + strings.Repeat("?", len(key)))
	if err != nil {
		return "", err
	}
	for _, f := range old {
		_ = os.Remove(f) // one that runs goes on
	}
	return program, os.Rename(part, program) // at once: two may build at the same time
}

func keyOf(source string) (string, error) {
	files, err := filepath.Glob(filepath.Join(source, "*.go"))
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version())
	for _, f := range append(files, filepath.Join(source, "../../../go.mod"), filepath.Join(source, "../../../go.sum")) {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		content, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", filepath.Base(f), len(content), content)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}
