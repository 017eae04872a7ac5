#!/usr/bin/env bash
# etcd.sh 35|36: builds the etcd server of that series from its module and
# prints where it is. It is kept outside the tree, under a key of all that it is
# built from, and used again while that is the same; older ones are removed.
set -euo pipefail
cd "$(dirname "$0")/etcd$1"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/suffrage
key=$({ go env GOVERSION; cat go.mod go.sum main.go; } | sha256sum | cut -c1-16)
program=$cache/etcd$1-$key
if [ ! -x "$program" ]; then
  echo "building etcd ${1:0:1}.${1:1} (once; a minute or so)" >&2
  mkdir -p "$cache"
  # -mod=readonly: go.mod and go.sum say all, nothing newer is taken.
  nice go build -mod=readonly -o "$program.$$" .
  rm -f "$cache/etcd$1"-????????????????
  mv "$program.$$" "$program" # at once: two may build at the same time
fi
echo "$program"
