//go:build !race

package memtest

const raced = false
