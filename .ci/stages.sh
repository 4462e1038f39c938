#!/usr/bin/env bash
# Runs the stages of `make test` in order, each within its budget, and goes on after a failure.
# A stage that needs root is skipped by name without it; FORBID_SKIPS=1 makes that a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

# make target, budget in seconds, what it needs. Fast proofs come first; the budgets add up to 40 minutes.
stages='
setup        300
fmt-check     30
archtest      30
lint         170
unit         390
race         420
deps          60
vuln          60
cross        210
fuzz         340
model        130
exam          60
crash-kill   100
crash-power  100  root
'

passed=0 failed=0 skipped=() report=
child=

trap '[[ -z $child ]] || kill "$child" 2>/dev/null; exit 130' INT TERM

# within SECONDS COMMAND...: runs it, and ends it with its children when its time is over.
within() {
	local seconds=$1
	shift
	if command -v timeout >/dev/null; then
		timeout --kill-after=10 "$seconds" "$@" &
	else
		"$@" &
	fi
	child=$!
	wait "$child"
}

# note RESULT STAGE TEXT: one line now, and again in the summary.
note() {
	local line
	line=$(printf '%-5s %-12s %s' "$1" "$2" "$3")
	echo "$line"
	report+=$line$'\n'
}

run() {
	local name=$1 budget=$2 needs=${3-} start=$SECONDS status=0
	if [[ $needs == root && $(id -u) -ne 0 ]]; then
		if [[ ${FORBID_SKIPS-} == 1 ]]; then
			note FAIL "$name" "needs root, and skips are forbidden"
			failed=$((failed + 1))
		else
			note SKIP "$name" "needs root"
			skipped+=("$name")
		fi
		return
	fi
	printf '\n== %s (at most %d s)\n' "$name" "$budget"
	within "$budget" make --no-print-directory "$name" || status=$?
	local took="$((SECONDS - start)) s of $budget s"
	case $status in
	0) note PASS "$name" "$took" && passed=$((passed + 1)) ;;
	124 | 137) note FAIL "$name" "$took: over its budget" && failed=$((failed + 1)) ;;
	*) note FAIL "$name" "$took: exit status $status" && failed=$((failed + 1)) ;;
	esac
}

while read -r name budget needs; do
	[[ -z $name ]] || run "$name" "$budget" "$needs" </dev/null
done <<<"$stages"

printf '\n%s' "$report"
printf 'total %d s\n' "$SECONDS"
((${#skipped[@]} == 0)) || echo "skipped: ${skipped[*]}"
echo "$passed passed, $failed failed"
((failed == 0))
