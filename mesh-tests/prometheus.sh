#!/usr/bin/env bash
# prometheus.sh: prints the folder that has prometheus and promtool. What this
# machine has is taken; else Debian's package is unpacked, not installed, since a
# service that listens is nothing that a test may leave behind.
set -euo pipefail

if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
  dirname "$(command -v promtool)"
  exit
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/suffrage/prometheus
if [ ! -x "$cache/usr/bin/promtool" ]; then
  echo "fetching Debian's prometheus (once)" >&2
  mkdir -p "$(dirname "$cache")"
  work=$(mktemp -d "$(dirname "$cache")/.prometheus-XXXXXX")
  trap 'rm -rf "$work"' EXIT
  cd "$work"
  fetch() { apt-get -q download prometheus >&2; }
  fetch || { apt-get -q update >&2 && fetch; }
  nice dpkg-deb -x prometheus_*.deb root
  rm -rf "$cache"
  mv root "$cache" # at once: half a package is never used
fi
echo "$cache/usr/bin"
