#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The scenarios that measure give what sim/scenarios/FIGURES.md says, to the last
# digit and the hash, whatever compiled them and wherever memory lies. Those that take
# long are left to who changes the page. Their options and their JSON are what
# rdmabox-sim(1) says.
#
# Usage: figures_are_as_written.sh RDMABOX MAKE-FIGURES FIGURES.md

set -uo pipefail
rdmabox=$1
make_figures=$2
page=$3
failed=0

fault()
{
	echo "$*"
	failed=1
}

# refuse TEXT OPTION... - exit code 2 and one line that holds TEXT
refuse()
{
	local text=$1 said status

	shift
	said=$("$rdmabox" sim "$@" 2>&1 >/dev/null)
	status=$?
	[ "$status" = 2 ] && [ "$(wc -l <<<"$said")" = 1 ] && [[ $said == *"$text"* ]] ||
		fault "sim $*: exit code $status, \"$said\", not \"$text\""
}

for name in calibrate fig1 fig2 fig6; do
	diff <(awk -v head="## rdmabox sim --scenario $name" \
		'index($0, "## ") == 1 { on = $0 == head } on' "$page" | sed -e '$ { /^$/d }') \
		<("$make_figures" "$rdmabox" "$name" | sed 1d) || fault "$name: not as in $page"
done

"$rdmabox" sim --scenario fig9 --nodes 2 --seed 5 --json - | python3 -c '
import json, sys
run = json.load(sys.stdin)
assert run["seed"] == 5 and run["nic"] == "ConnectX-3" and run["failed"] == "", run
assert run["requests"] > 0 and run["events"] > run["requests"], run
rates, cpus = run["tables"]
assert list(rates["rows"]["busy"]) == ["2"] and rates["rows"]["busy"]["2"] > 0, rates
assert rates["rows_are"] == "polling" and len(cpus["rows"]) == len(rates["rows"]), cpus
' || fault "its JSON is not as it should be"

hash_of()
{
	"$rdmabox" sim --scenario fig9 --nodes 2 --seed "$1" | sed -n 's/^hash \([0-9a-f]*\) .*/\1/p'
}
[ "$(hash_of 5)" != "$(hash_of 6)" ] || fault "two seeds are one run"

refuse 'fig1' --scenario nosuch
refuse 'n-to-one' --scenario nosuch
refuse 'there are connectx3' --scenario fig1 --nic nosuch
refuse 'as many nodes as it has' --scenario fig1 --nodes 2
refuse 'give 1 to 28' --scenario n-to-one --nodes 32
refuse 'not for it' --scenario fig1 --fault qp-error=0.1
refuse 'not for it' --scenario fig1 --hunt 1
exit $failed
