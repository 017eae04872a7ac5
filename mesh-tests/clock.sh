#!/bin/sh
# Builds suffrage for hosts whose clocks are off, and prints its path. There is no
# namespace for a wall clock, and Go asks for no library that could be replaced;
# so the standard library's time.Now adds SUFFRAGE_LAB_CLOCK, in seconds. The
# product's own code is the same, and the monotonic clock too. The times of files
# are the kernel's and stay right.
set -eu
cd "$(dirname "$0")/.."

out=$PWD/bin/suffrage-clock
time=$(go env GOROOT)/src/time/time.go
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sed 's/^\tsec, nsec, mono := runtimeNow()$/&\n\tsec += labClock/' "$time" >"$work/time.go"
if [ "$(grep -c 'sec += labClock' "$work/time.go")" != 1 ]; then
  echo "clock.sh: $time is not what this script knows how to change" >&2
  exit 1
fi
cat >"$work/clock.go" <<'GO'
package time

import "syscall"

// labClock is by how much the wall clock is off, in seconds.
var labClock = func() (sec int64) {
	s, _ := syscall.Getenv("SUFFRAGE_LAB_CLOCK")
	sign := int64(1)
	for _, c := range s {
		if c == '-' {
			sign = -1
		} else {
			sec = 10*sec + int64(c-'0')
		}
	}
	return sign * sec
}()
GO
printf '{"Replace": {"%s": "%s", "%s": "%s"}}\n' \
  "$time" "$work/time.go" "$(dirname "$time")/lab_clock.go" "$work/clock.go" >"$work/overlay.json"
go build -overlay "$work/overlay.json" -o "$out" ./cmd/suffrage
echo "$out"
