#!/usr/bin/env bash
# chromium.sh: prints the Chromium that this machine has. Where there is none Debian's
# package is installed, which needs root: it brings forty libraries, so that unpacking
# it alone would not do.
set -euo pipefail

find() { command -v chromium || command -v chromium-browser || command -v google-chrome; }
if ! find >/dev/null; then
  echo "installing Debian's chromium (once)" >&2
  install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium >&2; }
  install || { apt-get -q update >&2 && install; }
fi
find
