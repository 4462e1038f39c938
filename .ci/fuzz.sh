#!/usr/bin/env bash
# fuzz.sh EACH TOTAL: runs every fuzz target of the module for EACH seconds, or less when TOTAL seconds would not do.
set -euo pipefail
cd "$(dirname "$0")/.."

each=$1 total=$2
start_up=3 # seconds that a target takes before and after it fuzzes

targets=$(grep -rEo --include='*_test.go' --exclude-dir='.?*' --exclude-dir=tools '^func Fuzz[A-Z][A-Za-z0-9_]*' . |
	sed 's|\(.*\)/[^/]*:func \(.*\)|\1 \2|' | sort)
[[ -n $targets ]] || { echo "fuzz: no targets found" >&2; exit 1; }
count=$(wc -l <<<"$targets")

# fuzz DIRECTORY TARGET SECONDS. Before Go 1.27 the end of the fuzzing time may be reported as a failure of the target
# (go.dev/issue/75804): that, with no failing input found, is tried again.
fuzz() {
	local out _
	for _ in 1 2 3; do
		if out=$(go test "$1" -run '^$' -fuzz "^$2\$" -fuzztime "$3s" </dev/null 2>&1); then
			printf 'ok    %-22s %s\n' "$1" "$2"
			return 0
		fi
		[[ $out == *"context deadline exceeded"* && $out != *"Failing input"* ]] || break
	done
	printf '%s\nFAIL  %-22s %s\n' "$out" "$1" "$2"
	return 1
}

echo "fuzz: $count targets"
passed=0 failed=0
while read -r dir name; do
	left=$(((total - SECONDS) / (count - passed - failed) - start_up))
	((left > 0)) || left=1
	if fuzz "$dir" "$name" $((left < each ? left : each)); then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done <<<"$targets"
echo "$passed passed, $failed failed"
((failed == 0))
