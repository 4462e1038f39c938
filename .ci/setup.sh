#!/usr/bin/env bash
# Installs the few programs outside Go that `make test` runs, where they are missing and we may.
set -euo pipefail

# program, its Debian package
needs='
make        make
gcc         gcc
mkfs.ext4   e2fsprogs
losetup     mount
timeout     coreutils
'

PATH=$PATH:/usr/sbin:/sbin
missing=()
while read -r program package; do
	[[ -z $program ]] || command -v "$program" >/dev/null || missing+=("$package")
done <<<"$needs"

[[ -f /usr/include/stdlib.h || $(uname) != Linux ]] || missing+=(libc6-dev) # the race detector links with C

if ((${#missing[@]} == 0)); then
	echo "setup: nothing is missing"
elif [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
	echo "setup: installing ${missing[*]}"
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
	echo "setup: some stages need packages that only root can install: ${missing[*]}" >&2
fi
