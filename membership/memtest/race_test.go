//go:build race

package memtest

// raced: the race detector is on, and everything takes ten times as long. The
// model runs in one goroutine, so make test runs this package once more without.
const raced = true
