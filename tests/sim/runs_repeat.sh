#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The same seed is the same run: a second time, at other addresses, and in other builds,
# whatever the compiler and its options. A run and its result are lines of fixed form;
# what is wrong with a command line is one line, exit code 2.
#
# Usage: tests/sim/runs_repeat.sh RDMABOX...

set -uo pipefail
failed=0

fault()
{
	echo "$*"
	failed=1
}

# result PROGRAM... - the hash of a run and what came of it
result()
{
	"$@" sim --seed "$seed" --scenario "$scenario" |
		sed -nE 's/^hash ([0-9a-f]{16}) events .*/\1/p; s/^result //p' | paste -sd ' '
}

# refuse TEXT OPTION... - one line that holds TEXT
refuse()
{
	local text=$1 said status

	shift
	said=$("$program" sim "$@" 2>&1 >/dev/null)
	status=$?
	[ "$status" = 2 ] || fault "sim $*: exit code $status"
	[ "$(wc -l <<<"$said")" = 1 ] || fault "sim $*: more than a line"
	[[ $said == *"$text"* ]] || fault "sim $*: does not say \"$text\": $said"
}

program=$1
fixed=() # addresses; in other runs they are random
setarch -R true 2>/dev/null && fixed=(setarch -R)
for scenario in volume reclaim loss kept outage endpoint; do
	for seed in 2 5; do
		first=$(result "$program")
		[[ $first =~ ^[0-9a-f]{16}\ ok$ ]] || fault "$scenario $seed: $first"
		[ "$(result "${fixed[@]}" "$program")" = "$first" ] ||
			fault "$scenario $seed: differs a second time, or at other addresses"
		for other in "${@:2}"; do
			[ "$(result "$other")" = "$first" ] || fault "$scenario $seed: $other differs"
		done
	done
done

seed=1
first=$(result "$program")
seed=2
[ "$(result "$program")" != "$first" ] || fault "two seeds are one run"

"$program" sim --seed 3 --json - | python3 -c '
import json, sys
run = json.load(sys.stdin)
assert run["seed"] == 3 and run["scenario"] == "volume", run
assert run["failed"] == "" and len(run["hash"]) == 16, run
assert run["requests"] >= 4000 and run["events"] > run["requests"], run
' || fault "its JSON is none"
"$program" sim --seed 3 --trace | grep -E '^ +[0-9]+ +[0-9]+ post +qp=[0-9]+ count=[0-9]+$' >/dev/null ||
	fault "its trace has no post"
"$program" sim --seed 3 --fault qp-error=1 --fault retry-exceeded=0 |
	grep '^faults.* qp-error=1000000/1000000' >/dev/null || fault "a fault is not forced"

refuse 'there are volume' --scenario nothing
refuse 'there are late-completion' --fault nothing=1
refuse 'from 0 to 1' --fault qp-error=2
refuse 'from 0 to 1' --fault qp-error
refuse 'whole number' --seed x
refuse '--hunt' --seeds 5
refuse 'leave out --hunt' --hunt 60 --seeds 1 --json -
refuse 'leave out --hunt' --hunt 60 --seeds 1 --trace
exit "$failed"
