#!/usr/bin/env bash
# kubectl.sh: builds kubectl from its module and prints where it is. Like etcd.sh
# it keeps the program outside the tree, under a key of all that it is built from.
set -euo pipefail
cd "$(dirname "$0")/kubectl"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/suffrage
key=$({ go env GOVERSION; cat go.mod go.sum main.go ../kubectl.sh; } | sha256sum | cut -c1-16)
program=$cache/kubectl-$key
if [ ! -x "$program" ]; then
  echo "building kubectl (once; a minute or two)" >&2
  mkdir -p "$cache"
  nice -n 19 go build -mod=readonly -trimpath -ldflags "-s -w" -o "$program.$$" .
  rm -f "$cache"/kubectl-????????????????
  mv "$program.$$" "$program" # at once: two may build at the same time
fi
echo "$program"
