package memtest

import (
	"os"
	"runtime/debug"
	"testing"
)

// A run's heap is a few megabytes of things that live for one round: collected
// at every doubling, that costs a fifth of the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}
