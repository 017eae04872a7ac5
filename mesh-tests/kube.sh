#!/usr/bin/env bash
# kube.sh [-n]: builds the Kubernetes API server from its module and prints where
# it is; with -n it only prints where it would be. Like etcd.sh it keeps the
# program outside the tree, under a key of all that it is built from.
set -euo pipefail
cd "$(dirname "$0")/kube"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/suffrage
key=$({ go env GOVERSION; cat go.mod go.sum main.go ../kube.sh; } | sha256sum | cut -c1-16)
program=$cache/kube-apiserver-$key
if [ "${1:-}" != -n ] && [ ! -x "$program" ]; then
  echo "building kube-apiserver (once; a quarter of an hour on two cores)" >&2
  mkdir -p "$cache"
  # Without these the server tells no version that a client can parse.
  version=$(go list -mod=readonly -m -f '{{.Version}}' k8s.io/kubernetes)
  IFS=. read -r major minor _ <<<"${version#v}"
  at=k8s.io/component-base/version
  nice -n 19 go build -mod=readonly -trimpath \
    -ldflags "-s -w -X $at.gitVersion=$version -X $at.gitMajor=$major -X $at.gitMinor=$minor" -o "$program.$$" .
  rm -f "$cache"/kube-apiserver-????????????????
  mv "$program.$$" "$program" # at once: two may build at the same time
fi
echo "$program"
