#!/usr/bin/env bash
# tailscale.sh: builds tailscaled, with its command line in it, and what it needs
# around it, and prints the directory in which the two are: tailscaled and
# tailscale-lab. Like etcd.sh it keeps them outside the tree, under a key of all
# that they are built from.
set -euo pipefail
cd "$(dirname "$0")/tailscale"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/suffrage
key=$({ go env GOVERSION; cat go.mod go.sum ./*.go ../tailscale.sh; } | sha256sum | cut -c1-16)
folder=$cache/tailscale-$key
# Left out by Tailscale's own tags, since no path depends on it and it is a quarter of
# the build: clouds, SSH, file sharing, serving, a network without a device.
omit=aws,kube,ssh,netstack,gro,acme,tap,drive,systray,tpm,taildrop,serve,webclient,relayserver,completion,doctor,identityfederation,oauthkey,dbus,captiveportal
if [ ! -d "$folder" ]; then
  echo "building tailscaled (once; some minutes on two cores)" >&2
  mkdir -p "$cache"
  new=$(mktemp -d "$cache/tailscale-new.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  build() { nice -n 19 go build -mod=readonly -trimpath -ldflags "-s -w" "$@"; }
  build -tags "ts_include_cli,ts_omit_${omit//,/,ts_omit_}" -o "$new/tailscaled" tailscale.com/cmd/tailscaled
  build -o "$new/tailscale-lab" .
  chmod 755 "$new"
  rm -rf "$cache"/tailscale-????????????????
  mv -T "$new" "$folder" || [ -d "$folder" ] # at once: two may build at the same time
fi
echo "$folder"
