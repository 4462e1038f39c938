#!/usr/bin/env bash
# fuzz.sh SECONDS TOTAL: runs every fuzz target of the module for SECONDS, or less when TOTAL seconds would not do.
set -euo pipefail
cd "$(dirname "$0")/.."

each=$1 total=$2

targets=$(grep -rEo --include='*_test.go' --exclude-dir=.bin --exclude-dir=tools '^func Fuzz[A-Z][A-Za-z0-9_]*' . |
	sed 's|\(.*\)/[^/]*:func \(.*\)|\1 \2|' | sort)
[[ -n $targets ]] || { echo "fuzz: no targets found" >&2; exit 1; }

count=$(wc -l <<<"$targets")
((each * count <= total)) || each=$((total / count))
((each > 0)) || each=1
echo "fuzz: $count targets, $each s each"

while read -r dir name; do
	go test "$dir" -run '^$' -fuzz "^$name\$" -fuzztime "${each}s" </dev/null
done <<<"$targets"
