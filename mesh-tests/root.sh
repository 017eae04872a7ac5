#!/usr/bin/env bash
# root.sh: builds the root of a Debian host with systemd as its first process and
# prints where it is. It needs root, and apt for what is missing. The mirror is
# the one that this machine's apt has; it is written down nowhere. The root is
# kept outside the tree, under a key of all that it is made of; older ones are
# removed.
set -euo pipefail

need() {
  local missing=()
  command -v systemd-nspawn >/dev/null || missing+=(systemd-container)
  command -v debootstrap >/dev/null || missing+=(debootstrap)
  command -v ip >/dev/null || missing+=(iproute2)
  [ ${#missing[@]} -gt 0 ] || return 0
  echo "installing ${missing[*]}" >&2
  apt-get update -q >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >&2
}

[ "$(id -u)" = 0 ] || { echo "root.sh: booting hosts needs root" >&2; exit 1; }
need

suite=bookworm
packages=systemd,systemd-sysv,dbus,libnss-systemd
# polkitd lets a user other than root start one unit (docs/decisions.md). It cannot
# be configured before the rest is.
more=polkitd
cache=${XDG_CACHE_HOME:-$HOME/.cache}/suffrage
key=$(echo "$suite $packages $more" | sha256sum | cut -c1-16)
root=$cache/root-$key
if [ ! -e "$root/etc/os-release" ]; then
  mirror=$(apt-get indextargets --format '$(SITE) $(CODENAME) $(ORIGIN) $(COMPONENT)' 'Created-By: Packages' |
    awk -v s="$suite" '$2 == s && $3 == "Debian" && $4 == "main" { print $1; exit }')
  [ -n "$mirror" ] || { echo "root.sh: the apt sources of this machine have no Debian $suite" >&2; exit 1; }
  echo "building a root of Debian $suite (once; a minute or so)" >&2
  mkdir -p "$cache"
  rm -rf "$cache"/root-????????????????
  work=$(mktemp -d "$cache/.root-XXXXXX")
  trap 'rm -rf "$work"' EXIT
  {
    nice debootstrap --variant=minbase --include="$packages" "$suite" "$work/root" "$mirror" &&
      nice chroot "$work/root" apt-get install -y -q --no-install-recommends "$more" &&
      chroot "$work/root" apt-get clean
  } >"$work/log" 2>&1 || { tail -20 "$work/log" >&2; exit 1; }
  mv "$work/root" "$root" # at once: half a root is never used
fi
echo "$root"
